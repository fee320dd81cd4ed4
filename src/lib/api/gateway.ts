// HTTPRoute of the Gateway API as the wire carries it, cut down to the fields that kf writes or reads.
// Source: https://gateway-api.sigs.k8s.io/reference/spec/

import { resource } from './object.ts';
import type { Condition, KubeObject } from './object.ts';

export interface ParentReference {
  group?: string;
  kind?: string;
  namespace?: string;
  name: string;
  sectionName?: string;
}

export interface RouteMatch {
  path?: { type: 'PathPrefix' | 'Exact' | 'RegularExpression'; value: string };
  headers?: { type?: 'Exact'; name: string; value: string }[];
}

export interface BackendReference {
  group?: string;
  kind?: string;
  name: string;
  port: number;
  weight?: number;
}

export interface RouteFilter {
  type: 'ResponseHeaderModifier' | 'RequestHeaderModifier';
  responseHeaderModifier?: { set?: { name: string; value: string }[]; add?: { name: string; value: string }[]; remove?: string[] };
  requestHeaderModifier?: { set?: { name: string; value: string }[]; add?: { name: string; value: string }[]; remove?: string[] };
}

export interface RouteRule {
  matches?: RouteMatch[];
  filters?: RouteFilter[];
  backendRefs?: BackendReference[];
}

export interface HttpRoute extends KubeObject {
  spec?: { parentRefs?: ParentReference[]; hostnames?: string[]; rules?: RouteRule[] };
  status?: { parents?: { parentRef: ParentReference; controllerName?: string; conditions?: Condition[] }[] };
}

export const httpRouteType = resource<HttpRoute>('gateway.networking.k8s.io', 'v1', 'HTTPRoute', 'httproutes');
