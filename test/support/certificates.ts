// Temporary certificate authorities and certificates for servers and clients on loopback, made only with Node.

import { createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

/** DER: tag, length, content. Source: ITU-T X.690. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const size = content.length;
  if (size < 128) return Buffer.concat([Buffer.from([tag, size]), content]);
  const bytes = size < 256 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...bytes]), content]);
}

const sequence = (...parts: Buffer[]): Buffer => der(0x30, ...parts);
const set = (...parts: Buffer[]): Buffer => der(0x31, ...parts);
const boolean = (value: boolean): Buffer => der(0x01, Buffer.from([value ? 0xff : 0]));
const octets = (content: Buffer): Buffer => der(0x04, content);
const text = (value: string): Buffer => der(0x0c, Buffer.from(value, 'utf8'));
const time = (date: Date): Buffer => der(0x17, Buffer.from(`${date.toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`));

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const part of rest) {
    const digits = [part & 0x7f];
    for (let left = part >> 7; left > 0; left >>= 7) digits.unshift((left & 0x7f) | 0x80);
    bytes.push(...digits);
  }
  return der(0x06, Buffer.from(bytes));
}

const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'));

function subject(name: string, organizations: string[]): Buffer {
  const part = (type: string, value: string): Buffer => set(sequence(oid(type), text(value)));
  return sequence(...organizations.map((organization) => part('2.5.4.10', organization)), part('2.5.4.3', name));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(critical ? [boolean(true)] : []), octets(value));
}

function alternativeNames(names: string[]): Buffer {
  const ip = /^\d+\.\d+\.\d+\.\d+$/;
  const entries = names.map((name) => (ip.test(name) ? der(0x87, Buffer.from(name.split('.').map(Number))) : der(0x82, Buffer.from(name))));
  return extension('2.5.29.17', false, sequence(...entries));
}

function pem(label: string, content: Buffer): string {
  const lines = content.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}

export interface Certificate {
  /** PEM. */
  cert: string;
  key: string;
}

interface Signer {
  name: Buffer;
  key: KeyObject;
}

interface Wish {
  name: Buffer;
  extensions: Buffer[];
  /** Whole days relative to today. */
  days: [from: number, to: number];
}

function issue({ name, extensions, days }: Wish, signer?: Signer): Certificate & { own: KeyObject } {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = signer?.key ?? pair.privateKey;
  const day = 86_400_000;
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([0x40]), randomBytes(8)])),
    ecdsaWithSha256,
    signer?.name ?? name,
    sequence(time(new Date(Date.now() + days[0] * day)), time(new Date(Date.now() + days[1] * day))),
    name,
    createPublicKey(pair.privateKey).export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  );
  const signature = sign('sha256', body, key);
  const cert = pem('CERTIFICATE', sequence(body, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature)));
  return { cert, key: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), own: pair.privateKey };
}

/** An authority that signs certificates for servers and clients. */
export class CertificateAuthority {
  readonly cert: string;
  readonly #signer: Signer;

  constructor(name = 'test authority') {
    const own = subject(name, []);
    const basicConstraints = extension('2.5.29.19', true, sequence(boolean(true)));
    const keyUsage = extension('2.5.29.15', true, der(0x03, Buffer.from([1, 0x06])));
    const made = issue({ name: own, extensions: [basicConstraints, keyUsage], days: [-1, 30] });
    this.cert = made.cert;
    this.#signer = { name: own, key: made.own };
  }

  /** For a server with these names or IPv4 addresses. */
  server(names: string[] = ['127.0.0.1', 'localhost'], days: [number, number] = [-1, 30]): Certificate {
    const { cert, key } = issue({ name: subject(names[0] ?? '', []), extensions: [alternativeNames(names)], days }, this.#signer);
    return { cert, key };
  }

  /** For a Kubernetes user and its groups. */
  client(user: string, groups: string[] = []): Certificate {
    const { cert, key } = issue({ name: subject(user, groups), extensions: [], days: [-1, 30] }, this.#signer);
    return { cert, key };
  }
}
