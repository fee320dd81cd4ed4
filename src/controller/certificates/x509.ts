// Makes X.509 certificates (RFC 5280): a certification authority and the certificates of the gateway. The structures are those of @peculiar/asn1-x509;
// keys and signatures are Node's. The bundler makes a file of its own of this module, because the controller needs it once or twice a year.

import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  X509Certificate,
  type KeyObject,
} from 'node:crypto';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
} from '@peculiar/asn1-x509';

/** A certificate and its private key, both as PEM. */
export interface KeyPair {
  certificate: string;
  key: string;
}

export interface Period {
  notBefore: Date;
  notAfter: Date;
}

const v3 = 2;
/** ecdsa-with-SHA256 (RFC 5758). */
const signatureAlgorithm = new AlgorithmIdentifier({ algorithm: '1.2.840.10045.4.3.2' });
const commonNameType = '2.5.4.3';

const named = (commonName: string): Name =>
  new Name([
    new RelativeDistinguishedName([
      new AttributeTypeAndValue({ type: commonNameType, value: new AttributeValue({ utf8String: commonName }) }),
    ]),
  ]);

const bytesOf = (buffer: Uint8Array): ArrayBuffer => new Uint8Array(buffer).buffer;

function extension(extnID: string, value: object, critical = false): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

/** A positive number of 16 bytes, of which 126 bits are random; its first byte is not 0. */
function serialNumber(): ArrayBuffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytesOf(bytes);
}

/** The key as it is in a certificate. */
const publicInfo = (key: KeyObject): SubjectPublicKeyInfo =>
  AsnConvert.parse(key.export({ type: 'spki', format: 'der' }), SubjectPublicKeyInfo);

/** RFC 7093, method 1. */
const keyIdentifier = ({ subjectPublicKey }: SubjectPublicKeyInfo): ArrayBuffer =>
  bytesOf(createHash('sha256').update(Buffer.from(subjectPublicKey)).digest().subarray(0, 20));

interface Unsigned extends Period {
  subject: Name;
  issuer: Name;
  publicKey: KeyObject;
  issuerKey: KeyObject;
  extensions: Extension[];
}

function signed({ subject, issuer, publicKey, issuerKey, extensions, notBefore, notAfter }: Unsigned): string {
  const subjectPublicKeyInfo = publicInfo(publicKey);
  const issuerKeyId = new KeyIdentifier(keyIdentifier(publicInfo(createPublicKey(issuerKey))));
  const tbsCertificate = new TBSCertificate({
    version: v3,
    serialNumber: serialNumber(),
    signature: signatureAlgorithm,
    issuer,
    validity: new Validity({ notBefore, notAfter }),
    subject,
    subjectPublicKeyInfo,
    extensions: new Extensions([
      ...extensions,
      extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyIdentifier(subjectPublicKeyInfo))),
      extension(id_ce_authorityKeyIdentifier, new AuthorityKeyIdentifier({ keyIdentifier: issuerKeyId })),
    ]),
  });
  const signatureValue = bytesOf(sign('sha256', Buffer.from(AsnConvert.serialize(tbsCertificate)), issuerKey));
  const certificate = new Certificate({ tbsCertificate, signatureAlgorithm, signatureValue });
  return new X509Certificate(Buffer.from(AsnConvert.serialize(certificate))).toString();
}

const newKeys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const pemOf = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();

/** A certification authority that can sign certificates of servers, and no other authorities. */
export function createAuthority(commonName: string, period: Period): KeyPair {
  const { publicKey, privateKey } = newKeys();
  const extensions = [
    extension(id_ce_basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 }), true),
    extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign), true),
  ];
  const subject = named(commonName);
  return {
    certificate: signed({ subject, issuer: subject, publicKey, issuerKey: privateKey, extensions, ...period }),
    key: pemOf(privateKey),
  };
}

/** A certificate for a server with these DNS names, with a new key. */
export function issueServerCertificate(authority: KeyPair, commonName: string, dnsNames: readonly string[], period: Period): KeyPair {
  const { publicKey, privateKey } = newKeys();
  const issuer = AsnConvert.parse(new X509Certificate(authority.certificate).raw, Certificate).tbsCertificate.subject;
  const extensions = [
    extension(id_ce_basicConstraints, new BasicConstraints({ cA: false }), true),
    extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature), true),
    extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth])),
    extension(id_ce_subjectAltName, new SubjectAlternativeName(dnsNames.map((dNSName) => new GeneralName({ dNSName })))),
  ];
  const issuerKey = createPrivateKey(authority.key);
  return {
    certificate: signed({ subject: named(commonName), issuer, publicKey, issuerKey, extensions, ...period }),
    key: pemOf(privateKey),
  };
}
