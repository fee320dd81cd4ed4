// Credentials from a kubeconfig exec plugin (aws, gcloud, kubelogin …).
// Source: https://kubernetes.io/docs/reference/config-api/client-authentication.v1/

import { spawn } from 'node:child_process';
import { KfError, messageOf } from '../errors.ts';
import { pemOf, sameCredential } from './credential.ts';
import type { Credential, CredentialSource } from './credential.ts';
import type { ExecEntry, SelectedContext } from './kubeconfig.ts';
import { defined } from '../defined.ts';

type Env = Readonly<Record<string, string | undefined>>;

interface ExecStatus {
  token?: string;
  clientCertificateData?: string;
  clientKeyData?: string;
  expirationTimestamp?: string;
}

/** A token is renewed this long before it expires, so that it does not expire on its way. */
const leewayMs = 15_000;
const clusterConfigExtension = 'client.authentication.k8s.io/exec';

function clusterInfo({ cluster }: SelectedContext): Record<string, unknown> {
  const ca = pemOf(cluster['certificate-authority-data'], cluster['certificate-authority'], 'certificate authority');
  const config = cluster.extensions?.find((extension) => extension.name === clusterConfigExtension)?.extension;
  return {
    server: cluster.server,
    ...defined({ 'tls-server-name': cluster['tls-server-name'] }),
    ...(cluster['insecure-skip-tls-verify'] === true ? { 'insecure-skip-tls-verify': true } : {}),
    ...(ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
    ...defined({ 'proxy-url': cluster['proxy-url'], config }),
  };
}

function isInteractive(entry: ExecEntry): boolean {
  const terminal = Boolean(process.stdin.isTTY); // undefined, not false, without a terminal
  if (entry.interactiveMode === 'Always' && !terminal) {
    throw new KfError('usage', `The credential plugin "${entry.command}" must be used at a terminal, and standard input is none.`);
  }
  return terminal && entry.interactiveMode !== 'Never';
}

function pluginFailed(entry: ExecEntry, why: string, cause?: unknown): KfError {
  const hint = entry.installHint?.trim();
  return new KfError('forbidden', `The credential plugin "${entry.command}" of the kubeconfig ${why}.`, {
    hints: hint === undefined || hint === '' ? [[entry.command, ...(entry.args ?? [])].join(' ')] : hint.split('\n'),
    cause,
  });
}

/** Runs the plugin; its stderr goes to ours, because it may say where to log in. */
function run(entry: ExecEntry, env: Env, info: string, interactive: boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    const extra = Object.fromEntries((entry.env ?? []).map(({ name, value }) => [name, value]));
    const child = spawn(entry.command, entry.args ?? [], {
      env: { ...env, ...extra, KUBERNETES_EXEC_INFO: info },
      stdio: [interactive ? 'inherit' : 'ignore', 'pipe', 'inherit'],
      windowsHide: true,
    });
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.on('error', (error: NodeJS.ErrnoException) => {
      reject(pluginFailed(entry, error.code === 'ENOENT' ? 'is not installed' : `cannot be started: ${error.message}`, error));
    });
    child.on('close', (code, signal) => {
      if (code === 0) resolve(Buffer.concat(chunks).toString('utf8'));
      else reject(pluginFailed(entry, signal === null ? `ended with exit code ${String(code)}` : `was ended by ${signal}`));
    });
  });
}

function parseAnswer(entry: ExecEntry, text: string): ExecStatus {
  let answer: { kind?: string; apiVersion?: string; status?: ExecStatus };
  try {
    answer = JSON.parse(text) as typeof answer;
  } catch (error) {
    throw pluginFailed(entry, `printed no ExecCredential: ${messageOf(error)}`, error);
  }
  if (answer.kind !== 'ExecCredential' || answer.status === undefined) throw pluginFailed(entry, 'printed no ExecCredential');
  if (answer.apiVersion !== entry.apiVersion) {
    throw pluginFailed(entry, `answered in the version "${String(answer.apiVersion)}", but the kubeconfig asks for "${entry.apiVersion}"`);
  }
  const { token, clientCertificateData: cert, clientKeyData: key } = answer.status;
  if ((token ?? '') === '' && ((cert ?? '') === '' || (key ?? '') === ''))
    throw pluginFailed(entry, 'gave neither a token nor a certificate with its key');
  return answer.status;
}

/** Runs the plugin on first use, again shortly before `expirationTimestamp`, and after a 401; concurrent requests share one run. */
export function execCredential(entry: ExecEntry, selected: SelectedContext, env: Env, now: () => number = Date.now): CredentialSource {
  let current: Credential | undefined;
  let expiresAt = Infinity;
  let running: Promise<Credential> | undefined;

  const ask = async (): Promise<Credential> => {
    const interactive = isInteractive(entry);
    const spec = { interactive, ...(entry.provideClusterInfo === true ? { cluster: clusterInfo(selected) } : {}) };
    const info = JSON.stringify({ kind: 'ExecCredential', apiVersion: entry.apiVersion, spec });
    const status = parseAnswer(entry, await run(entry, env, info, interactive));
    expiresAt = status.expirationTimestamp === undefined ? Infinity : Date.parse(status.expirationTimestamp);
    current = {
      ...(status.token === undefined || status.token === '' ? {} : { authorization: `Bearer ${status.token}` }),
      ...defined({ cert: status.clientCertificateData, key: status.clientKeyData }),
    };
    return current;
  };
  const askOnce = (): Promise<Credential> => {
    running ??= ask().finally(() => {
      running = undefined;
    });
    return running;
  };
  return {
    async get() {
      return current !== undefined && now() < expiresAt - leewayMs ? current : askOnce();
    },
    async renew(refused) {
      // Another request may have renewed it in the meantime.
      if (current !== undefined && !sameCredential(current, refused)) return true;
      return !sameCredential(await askOnce(), refused);
    },
  };
}
