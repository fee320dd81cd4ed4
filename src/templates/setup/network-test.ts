// The pods with which setup tests whether the cluster's network enforces NetworkPolicies: one listens, others connect to it.

import type { Pod } from '../../lib/api/pod-kind.ts';
import type { NetworkPolicy } from '../../lib/api/network-policy.ts';
import { networkPolicy } from '../network-policies.ts';
import { systemNamespace } from './options.ts';
import { restrictedContainer, restrictedPod } from '../pod-security.ts';

const port = 8080;

const listener = `require('node:net').createServer((socket) => socket.end()).listen(${port}, '::')`;

/** Tries until the outcome is the expected one or 5 s are over, and writes the last outcome as the container's termination message. */
const connector = `
const net = require('node:net');
const deadline = Date.now() + 5000;
const end = (outcome) => { require('node:fs').writeFileSync('/dev/termination-log', outcome); process.exit(0); };
const attempt = () => {
  const socket = net.connect({ host: process.env.ADDRESS, port: ${port}, timeout: 500 });
  const over = (outcome) => {
    socket.destroy();
    if (outcome === process.env.EXPECTED || Date.now() > deadline) end(outcome);
    setTimeout(attempt, 100);
  };
  socket.once('connect', () => over('open')).once('error', () => over('closed')).once('timeout', () => over('closed'));
};
attempt();`;

function pod(labelled: { name: string; app: string }, image: string, script: string, env: Record<string, string>): Pod {
  const { name, app } = labelled;
  const container = {
    name: 'test',
    image,
    imagePullPolicy: 'IfNotPresent',
    command: ['node', '-e', script],
    env: Object.entries(env).map(([key, value]) => ({ name: key, value })),
    resources: { requests: { cpu: '10m', memory: '32Mi' }, limits: { memory: '128Mi' } },
    securityContext: restrictedContainer,
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: systemNamespace, labels: { app } },
    spec: {
      restartPolicy: 'Never',
      activeDeadlineSeconds: 120,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 0,
      securityContext: restrictedPod,
      containers: [container],
    },
  } as Pod;
}

/** The pod to which the others connect. */
export function buildListener(name: string, image: string): Pod {
  return pod({ name, app: name }, image, listener, {});
}

export type Reach = 'open' | 'closed';

/** A pod that connects to an address until the outcome is as expected, and reports the last outcome. Several pods may have the same `app`. */
export function buildConnector(labelled: { name: string; app: string }, image: string, input: { address: string; expected: Reach }): Pod {
  return pod(labelled, image, connector, { ADDRESS: input.address, EXPECTED: input.expected });
}

/** Allows connections from one pod to the other; without it, kf's own namespace is closed. */
export function buildTestPolicy(name: string, from: string): NetworkPolicy {
  return networkPolicy(systemNamespace, name, {
    podSelector: { matchLabels: { app: name } },
    policyTypes: ['Ingress'],
    ingress: [{ from: [{ podSelector: { matchLabels: { app: from } } }] }],
  });
}
