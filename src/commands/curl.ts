import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { KfError } from '../lib/errors.ts';

interface Result {
  status: number;
  headers: Record<string, string>;
  /** The document, or the text of an answer that is none. */
  body: unknown;
}

function documentOf(body: Buffer): unknown {
  const text = body.toString('utf8');
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** Why a request was refused: by the v3 API, or by Kubernetes. */
function reasonsOf(document: unknown): string[] {
  const { errors, message } = (document ?? {}) as { errors?: unknown; message?: unknown };
  if (Array.isArray(errors)) return errors.map((error: { detail?: unknown }) => String(error.detail));
  return typeof message === 'string' ? [message] : [];
}

export default class Curl extends KfCommand<Result> {
  static override summary = 'make a request of the CF v3 API, or of the Kubernetes API';
  static override examples = [
    'kf curl "/v3/apps?names=example-app"',
    'kf curl -X POST /v3/apps/GUID/actions/restart --fail',
    'kf curl /api/v1/namespaces/GUID/pods',
  ];
  static override seeAlso = ['app', 'apps', 'target'];
  static override environment: [string, string][] = [
    ['CF_STAGING_TIMEOUT', 'minutes to wait for a build that a start needs, default 15'],
    ['CF_STARTUP_TIMEOUT', 'minutes to wait for instances of a scale action, default 5'],
  ];
  static override args = { PATH: requiredArg('path and query: /v3/..., or /api/... and /apis/... of Kubernetes') };
  static override flags = {
    header: Flags.string({ char: 'H', multiple: true, summary: 'header for Kubernetes, repeatable; /v3 needs none', helpValue: 'HEADER' }),
    request: Flags.string({ char: 'X', summary: 'method, default GET, or POST with -d', helpValue: 'METHOD' }),
    data: Flags.string({ char: 'd', summary: 'body of the request, or @ and the name of a file', helpValue: 'DATA' }),
    fail: Flags.boolean({ char: 'f', summary: 'end with exit code 22 on a status of 400 or more' }),
    include: Flags.boolean({ char: 'i', summary: 'print the headers of the answer too' }),
    output: Flags.string({ summary: 'write the answer to this file', helpValue: 'FILE' }),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(Curl);
    const [session, { curl, headOf, saveAnswer }] = await this.inCluster(import('../lib/ops/v3/curl.ts'));
    const { request: method, data, header } = flags;
    if ((method ?? (data === undefined ? 'GET' : 'POST')).toUpperCase() !== 'GET') await this.nameCluster(session);
    const answer = await curl(session, { path: args.PATH, method, data, headers: header });
    const { status, headers, body } = answer;
    if (flags.fail && status >= 400) {
      const document = documentOf(body);
      const options = { exitCode: 22, hints: reasonsOf(document), details: { status, body: document } };
      throw new KfError('failed', `The requested URL returned error: ${status}`, options);
    }
    const content = flags.include ? Buffer.concat([Buffer.from(headOf(answer)), body]) : body;
    this.display.done();
    if (flags.output === undefined) this.terminal.out(content.toString('utf8'));
    else {
      await saveAnswer(flags.output, content);
      this.ok();
    }
    return { status, headers, body: documentOf(body) };
  }
}
