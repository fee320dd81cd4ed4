import { describe, expect, test } from 'vitest';
import { AddressGuard, kindOfAddress } from '../../../src/lib/oci/addresses.ts';

test.each([
  ['93.184.216.34', 'public'],
  ['2606:2800:220:1::1', 'public'],
  ['169.254.169.254', 'link-local'],
  ['::ffff:169.254.169.254', 'link-local'],
  ['fe80::1', 'link-local'],
  ['fd00:ec2::254', 'link-local'],
  ['127.0.0.1', 'loopback'],
  ['127.9.9.9', 'loopback'],
  ['0.0.0.0', 'loopback'],
  ['::1', 'loopback'],
  ['::', 'loopback'],
  ['::ffff:127.0.0.1', 'loopback'],
  ['10.0.0.1', 'private'],
  ['172.31.255.255', 'private'],
  ['172.32.0.1', 'public'],
  ['192.168.1.1', 'private'],
  ['100.64.0.1', 'private'],
  ['224.0.0.1', 'private'],
  ['255.255.255.255', 'private'],
  ['fd12::1', 'private'],
  ['64:ff9b::a9fe:a9fe', 'private'],
])('the address %s is %s', (address, kind) => {
  expect(kindOfAddress(address)).toBe(kind);
});

describe('a registry', () => {
  const asked = (host: string, address: string): AddressGuard => {
    const guard = new AddressGuard(host);
    guard.check(host, address);
    return guard;
  };

  test('may have any address except a link-local one', () => {
    for (const address of ['93.184.216.34', '10.1.2.3', '127.0.0.1']) expect(() => asked('r.example', address)).not.toThrow();
    expect(() => asked('r.example', '169.254.169.254')).toThrow("The registry 'r.example' is not asked: its address is link-local.");
  });

  test.each(['169.254.169.254', '127.0.0.1', '10.96.0.1', '::1', 'fe80::1', '::ffff:10.0.0.1'])('may not redirect to %s', (address) => {
    for (const own of ['93.184.216.34', '10.1.2.3'])
      expect(() => asked('r.example', own).check('elsewhere.example', address)).toThrow(/sends to 'elsewhere.example'/);
  });

  test('may redirect to public addresses, and to itself with another name or port', () => {
    expect(() => asked('r.example', '10.1.2.3').check('cdn.example', '93.184.216.34')).not.toThrow();
    expect(() => asked('r.example', '10.1.2.3').check('r2.example', '10.1.2.3')).not.toThrow();
  });

  test('is checked when the connection is made, because a name is resolved only then', async () => {
    const guard = new AddressGuard('r.example');
    const error = await new Promise<Error | null>((resolve) => guard.lookup('localhost', { all: true }, resolve));
    expect(error?.message).toContain("sends to 'localhost'");
  });
});
