// The Secrets and the ConfigMap of the gateway's certificates: `kubernetes.io/tls`, with the certificate of the authority in `ca.crt`.

export const certificateFields = { certificate: 'tls.crt', key: 'tls.key', authority: 'ca.crt' } as const;

export const tlsSecretType = 'kubernetes.io/tls';
