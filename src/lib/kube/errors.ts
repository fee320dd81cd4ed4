// Errors of the API server and of the connection to it, as sentences for users and facts for code.

import { KfError } from '../errors.ts';
import type { FailureClass, KfErrorOptions } from '../errors.ts';
import { isOfTerminating, readRefusal } from './refusals.ts';
import { defined } from '../defined.ts';

/** metav1.Status, the body of the API server's own errors. */
export interface StatusBody {
  kind?: string;
  status?: string;
  message?: string;
  reason?: string;
  code?: number;
  details?: {
    name?: string;
    group?: string;
    kind?: string;
    uid?: string;
    causes?: { reason?: string; message?: string; field?: string }[];
    retryAfterSeconds?: number;
  };
}

export interface Identity {
  context: string;
  server: string;
  user: string;
}

/** A missing right, as the API server named it. */
export interface MissingRight {
  user: string;
  verb: string;
  /** `pods`, `pods/log`. */
  resource: string;
  group: string;
  /** Absent: cluster-scoped. */
  ns?: string;
}

export interface KubeErrorFacts {
  /** HTTP status; 0 when no answer came. */
  status: number;
  /** metav1 reason (`NotFound`, `AlreadyExists` …), or the connection's error code (`ECONNREFUSED`). */
  reason: string;
  body?: StatusBody;
  missingRight?: MissingRight;
}

/** An error answer of Kubernetes. */
export class KubeError extends KfError {
  readonly status: number;
  readonly reason: string;
  /** The API server's Status object, when it sent one. */
  readonly body: StatusBody | undefined;
  readonly missingRight: MissingRight | undefined;

  constructor(code: FailureClass, message: string, facts: KubeErrorFacts, options: KfErrorOptions = {}) {
    super(code, message, { ...options, details: { ...options.details, status: facts.status, reason: facts.reason } });
    this.name = 'KubeError';
    this.status = facts.status;
    this.reason = facts.reason;
    this.body = facts.body;
    this.missingRight = facts.missingRight;
  }

  /** The resourceVersion or continue token is too old: list again. */
  get expired(): boolean {
    return this.status === 410;
  }
}

// The type guards narrow only the status, so that a false result does not mean "not a KubeError".

export function isNotFound(error: unknown): error is KubeError & { status: 404 } {
  return error instanceof KubeError && error.status === 404;
}

/** 404 for the whole kind (its CRD is not installed), not for one object. */
export function isMissingKind(error: unknown): error is KubeError & { status: 404 } {
  return isNotFound(error) && (error.body?.details?.name ?? '') === '';
}

export function isAlreadyExists(error: unknown): error is KubeError & { status: 409 } {
  return error instanceof KubeError && error.status === 409 && error.reason === 'AlreadyExists';
}

/** Another writer changed the object (resourceVersion, uid or field manager); not AlreadyExists. */
export function isConflict(error: unknown): error is KubeError & { status: 409 } {
  return error instanceof KubeError && error.status === 409 && error.reason !== 'AlreadyExists';
}

export function isExpired(error: unknown): error is KubeError & { status: 410 } {
  return error instanceof KubeError && error.expired;
}

export function isForbidden(error: unknown): error is KubeError & { status: 403 } {
  return error instanceof KubeError && error.status === 403;
}

/** Refused to create an object in a namespace that is being deleted. */
export function isTerminating(error: unknown): error is KubeError & { status: 403 } {
  return error instanceof KubeError && isOfTerminating(error.status, error.body?.details?.causes);
}

/** The object itself is wrong: the same request never succeeds. */
export function isInvalid(error: unknown): error is KubeError & { status: 422 } {
  return error instanceof KubeError && error.status === 422;
}

/** No answer came from the API server. */
export function isUnreachable(error: unknown): error is KubeError & { code: 'unreachable' } {
  return error instanceof KubeError && error.code === 'unreachable';
}

/** An error of a restart or an overload of the API server: a later try may succeed. */
export function isTransient(error: unknown): error is KubeError {
  return isUnreachable(error) || (error instanceof KubeError && (error.status === 429 || error.status >= 500));
}

/** The text of kube-apiserver's RBAC refusals (staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go). */
const rbacRefusal =
  /User "([^"]*)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)" (?:in the namespace "([^"]+)"|at the cluster scope)/;

function missingRightOf(message: string): MissingRight | undefined {
  const [, user, verb, resource, group, ns] = rbacRefusal.exec(message) ?? [];
  if (user === undefined || verb === undefined || resource === undefined) return undefined;
  return { user, verb, resource, group: group ?? '', ...defined({ ns }) };
}

function qualified(resource: string, group: string): string {
  const [plural = resource, subresource] = resource.split('/');
  const name = group === '' ? plural : `${plural}.${group}`;
  return subresource === undefined ? name : `${name}/${subresource}`;
}

/** `may not list "pods" in the namespace "x"`: the end of a sentence about a user. */
export function describeRight(right: Omit<MissingRight, 'user'>): string {
  const place = right.ns === undefined ? 'in the whole cluster' : `in the namespace "${right.ns}"`;
  return `may not ${right.verb} "${qualified(right.resource, right.group)}" ${place}`;
}

/** The command that checks the right, and who can grant it. */
export function rightHints(right: Omit<MissingRight, 'user'>, identity: Identity | undefined): string[] {
  const scope = right.ns === undefined ? ' --all-namespaces' : ` --namespace ${right.ns}`;
  const context = identity === undefined ? '' : ` --context ${identity.context}`;
  return [
    right.ns === undefined
      ? 'An administrator of the cluster must grant it.'
      : 'A manager of the org or space, or an administrator of the cluster, must grant it.',
    `kubectl auth can-i ${right.verb} ${qualified(right.resource, right.group)}${scope}${context}`,
  ];
}

function sentence(text: string): string {
  const trimmed = text.trim();
  return /[.!?]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}

export function parseStatus(body: string): StatusBody | undefined {
  if (!body.trimStart().startsWith('{')) return undefined;
  try {
    const parsed = JSON.parse(body) as StatusBody;
    return parsed.kind === 'Status' ? parsed : undefined;
  } catch {
    return undefined;
  }
}

const classes: Record<number, FailureClass> = {
  401: 'forbidden',
  403: 'forbidden',
  404: 'not-found',
  408: 'timeout',
  409: 'conflict',
  502: 'unreachable',
  503: 'unreachable',
  504: 'timeout',
};

function forbidden(facts: KubeErrorFacts, text: string, identity: Identity | undefined): KubeError {
  const right = missingRightOf(text);
  if (right === undefined) return new KubeError('forbidden', `Error from Kubernetes: ${sentence(text)}`, facts);
  return new KubeError(
    'forbidden',
    `Error from Kubernetes: the user "${right.user}" ${describeRight(right)}.`,
    { ...facts, missingRight: right },
    { hints: rightHints(right, identity), details: { missingRight: right } },
  );
}

function factsOf(status: number, body: StatusBody | undefined): KubeErrorFacts {
  return { status, reason: body?.reason ?? '', ...defined({ body }) };
}

function unauthorized(facts: KubeErrorFacts, identity: Identity | undefined): KubeError {
  const who = identity === undefined ? '' : ` of the user "${identity.user}" (context "${identity.context}")`;
  return new KubeError('forbidden', `Error from Kubernetes: the credentials${who} are not accepted; they may have expired.`, facts, {
    hints: identity === undefined ? [] : [`kubectl auth whoami --context ${identity.context}`],
  });
}

/**
 * The error for an HTTP status of 400 or more and its body (a Status object or plain text).
 * `path` is shown when the API server does not know it.
 */
export function errorFromAnswer(status: number, body: string, identity?: Identity, path = ''): KubeError {
  const facts = factsOf(status, parseStatus(body));
  const text = facts.body?.message ?? body.slice(0, 500).trim();
  if (status === 401) return unauthorized(facts, identity);
  const refusal = readRefusal(status, text, facts.body?.details);
  if (refusal !== undefined) {
    const said = sentence(refusal.text);
    return new KubeError(refusal.code, refusal.isWhole === true ? said : `Error from Kubernetes: ${said}`, facts, { hints: refusal.hints });
  }
  if (status === 403) return forbidden(facts, text, identity);
  const isUnknownPath = status === 404 && path !== '' && (facts.body?.details?.name ?? '') === '';
  if (isUnknownPath)
    return new KubeError('not-found', `Error from Kubernetes: this cluster does not know ${path.split('?', 1)[0] ?? path}.`, facts);
  const shown = text === '' ? `HTTP status ${String(status)}` : text;
  return new KubeError(classes[status] ?? 'failed', `Error from Kubernetes: ${sentence(shown)}`, facts);
}

/** A proxy on the way removed the upgrade from the request. */
export function notUpgraded(status: number, { server }: Identity): KubeError {
  const message = `The API server at ${server}, or a proxy before it, does not take WebSockets: it answered ${String(status)} instead of an upgrade.`;
  return new KubeError('failed', message, { status, reason: 'UpgradeRequired' });
}

/** The error for a Status object (an ERROR event of a watch). */
export function errorFromStatus(status: StatusBody, identity?: Identity): KubeError {
  return errorFromAnswer(status.code ?? 500, JSON.stringify({ ...status, kind: 'Status' }), identity);
}

const connectionTexts: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there (connection refused)',
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
  ENOTFOUND: 'the name of the server cannot be resolved',
  EAI_AGAIN: 'the name of the server cannot be resolved just now',
  ETIMEDOUT: 'no answer came in time',
  EHOSTUNREACH: 'there is no way to that address',
  ENETUNREACH: 'there is no way to that network',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate was made for another name',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is not signed by the authority of the kubeconfig',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is not signed by the authority of the kubeconfig',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is not signed by the authority of the kubeconfig',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is not signed by the authority of the kubeconfig',
  EPROTO: 'it does not speak TLS as expected',
};

/** The code of a failed connection; happy eyeballs wraps several attempts in one error. */
export function connectionCode(error: unknown): string {
  if (error instanceof AggregateError && !('code' in error)) return connectionCode(error.errors[0]);
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}

/** No answer: names the server, the context, the cause, and how to investigate. */
export function unreachableError(error: unknown, identity: Identity, proxy?: string): KubeError {
  const code = connectionCode(error);
  const why = connectionTexts[code] ?? (error instanceof Error && error.message !== '' ? error.message : String(error));
  const way = proxy === undefined ? '' : ` through the proxy ${proxy}`;
  return new KubeError(
    'unreachable',
    `Kubernetes does not answer at ${identity.server}${way} (context "${identity.context}"): ${why}.`,
    { status: 0, reason: code },
    { hints: [`kubectl cluster-info --context ${identity.context}`, 'kubectl config get-contexts'], cause: error },
  );
}
