// Gives every request an ID, as Cloud Foundry's router does, and removes what clients could forge. Traefik has no setting for it.

import type { GatewayPlugin } from './gateway-plugin.ts';

/**
 * `X-Vcap-Request-Id` is new for each request, whatever the client sends. `X-Request-Id` is the client's, if it sends one, so that an ID can go through
 * several apps. Of a WebSocket, Traefik calls the protocol `wss` or `ws`; apps expect `https` or `http`, as from Cloud Foundry's router.
 *
 * Traefik sets `X-Forwarded-For` and others itself. It passes on `Forwarded` and the certificate of a client, which frameworks trust too, and names with `_`
 * in the place of `-`, which CGI, WSGI and Rack read as the same header.
 */
const program = `package requestid

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"
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

func isOfGateway(name string) bool {
	switch name {
	case "Forwarded", "X-Forwarded-Client-Cert", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto",
		"X-Forwarded-Server", "X-Real-Ip", "X-Vcap-Request-Id":
		return true
	}
	return false
}

func clean(h http.Header) {
	h.Del("Forwarded")
	h.Del("X-Forwarded-Client-Cert")
	for name := range h {
		if strings.IndexByte(name, '_') >= 0 && isOfGateway(http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))) {
			delete(h, name)
		}
	}
}

func New(_ context.Context, next http.Handler, _ *Config, _ string) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		clean(r.Header)
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

export const requestIdPlugin: GatewayPlugin = {
  name: 'requestid',
  summary: 'Gives every request an ID, as the router of Cloud Foundry does.',
  sources: { 'requestid.go': program },
};
