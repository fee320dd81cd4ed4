// What Traefik needs of a middleware of kf.

export interface GatewayPlugin {
  /** Also of its Go package. */
  name: string;
  summary: string;
  /** By file name. */
  sources: Readonly<Record<string, string>>;
}
