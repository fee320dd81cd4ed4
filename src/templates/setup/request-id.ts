// Gives every request an ID, as Cloud Foundry's router does. Traefik has no setting for it; it runs this middleware in its interpreter for Go (a local
// plugin, which needs no download).

import { createHash } from 'node:crypto';
import type { KubeObject } from '../../lib/api/object.ts';

const pluginName = 'requestid';
const moduleName = `kf.cloudfoundry.org/${pluginName}`;
/** Traefik looks for `plugins-local` in its working directory. */
const folder = '/kf';
const sourceFolder = `plugins-local/src/${moduleName}`;
const configMapName = 'kf-gateway-request-id';

/**
 * `X-Vcap-Request-Id` is new for each request, whatever the client sends. `X-Request-Id` is the client's, if it sends one, so that an ID can go through
 * several apps. Of a WebSocket, Traefik calls the protocol `wss` or `ws`; apps expect `https` or `http`, as from Cloud Foundry's router.
 */
const program = `package requestid

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
)

type Config struct{}

func CreateConfig() *Config {
	return &Config{}
}

func newID() string {
	b := make([]byte, 16)
	rand.Read(b)
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func New(_ context.Context, next http.Handler, _ *Config, _ string) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := newID()
		r.Header.Set("X-Vcap-Request-Id", id)
		if r.Header.Get("X-Request-Id") == "" {
			r.Header.Set("X-Request-Id", id)
		}
		switch r.Header.Get("X-Forwarded-Proto") {
		case "wss":
			r.Header.Set("X-Forwarded-Proto", "https")
		case "ws":
			r.Header.Set("X-Forwarded-Proto", "http")
		}
		next.ServeHTTP(w, r)
	}), nil
}
`;

const manifest = `displayName: kf request ID
type: middleware
import: ${moduleName}
summary: Gives every request an ID, as the router of Cloud Foundry does.
testData: {}
`;

const dynamic = `http:
  middlewares:
    ${pluginName}:
      plugin:
        ${pluginName}: {}
`;

/** By key of the ConfigMap: where the file is, below the working directory, and its text. */
const files: Record<string, { path: string; text: string }> = {
  'requestid.go': { path: `${sourceFolder}/requestid.go`, text: program },
  'traefik.yml': { path: `${sourceFolder}/.traefik.yml`, text: manifest },
  'dynamic.yml': { path: 'dynamic.yml', text: dynamic },
};

const volume = {
  name: 'request-id',
  configMap: { name: configMapName, items: Object.entries(files).map(([key, { path }]) => ({ key, path })) },
};

/** What the middleware adds to Traefik's Deployment, for these entry points. */
export const requestId = {
  arguments: (entryPoints: readonly string[]): string[] => [
    `--experimental.localplugins.${pluginName}.modulename=${moduleName}`,
    `--providers.file.filename=${folder}/dynamic.yml`,
    ...entryPoints.map((name) => `--entrypoints.${name}.http.middlewares=${pluginName}@file`),
  ],
  workingDir: folder,
  volume,
  volumeMount: { name: volume.name, mountPath: folder, readOnly: true },
  /** Starts Traefik again when the files change. */
  annotations: { 'kf.cloudfoundry.org/request-id': createHash('sha256').update(JSON.stringify(files)).digest('hex').slice(0, 10) },
};

export function buildRequestId(namespace: string): KubeObject {
  const data = Object.fromEntries(Object.entries(files).map(([key, { text }]) => [key, text]));
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: configMapName, namespace }, ...{ data } };
}
