import { KfCommand } from '../base-command.ts';
import type { AuthorityCertificate } from '../lib/ops/install/authority.ts';
import { otherAuthorities, renderAuthority } from '../lib/views/authority.ts';

export default class CaCertificate extends KfCommand<AuthorityCertificate> {
  static override summary = 'print the certificate of the authority for https';
  static override examples = ['kf ca-certificate > kf-ca.pem', 'curl --cacert kf-ca.pem https://example-app.apps.example.com'];
  static override isAboutInstallation = true;
  static override seeAlso = ['domains', 'setup'];

  async run(): Promise<AuthorityCertificate> {
    await this.parse(CaCertificate);
    const [session, { authorityCertificate }] = await this.inCluster(import('../lib/ops/install/authority.ts'));
    const authority = await authorityCertificate(session);
    this.print(renderAuthority(authority));
    for (const text of otherAuthorities(authority)) this.terminal.err(text);
    return authority;
  }
}
