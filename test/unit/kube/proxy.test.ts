import { describe, expect, test } from 'vitest';
import { proxyFor } from '../../../src/lib/kube/proxy.ts';

const server = new URL('https://api.example.com:6443');

describe('the proxy before an API server', () => {
  test.each<[string, string, string | undefined, Record<string, string>, string | undefined]>([
    ['none', 'https://api.example.com', undefined, {}, undefined],
    [
      'HTTPS_PROXY for https',
      'https://api.example.com',
      undefined,
      { HTTPS_PROXY: 'http://p:3128', HTTP_PROXY: 'http://q' },
      'http://p:3128',
    ],
    ['the lower case name', 'https://api.example.com', undefined, { https_proxy: 'p:3128' }, 'http://p:3128'],
    ['HTTP_PROXY for http', 'http://api.example.com', undefined, { HTTPS_PROXY: 'http://p', HTTP_PROXY: 'http://q' }, 'http://q'],
    [
      'proxy-url over everything',
      'https://api.example.com',
      'https://k:8443',
      { HTTPS_PROXY: 'http://p', NO_PROXY: '*' },
      'https://k:8443',
    ],
    ['loopback goes direct', 'https://127.0.0.1:6443', undefined, { HTTPS_PROXY: 'http://p' }, undefined],
    ['loopback by proxy-url does not', 'https://127.0.0.1:6443', 'http://k:1', {}, 'http://k:1'],
  ])('%s', (_what, url, proxyUrl, env, expected) => {
    expect(proxyFor(new URL(url), proxyUrl, env)?.origin).toBe(expected);
  });

  test.each<[string, boolean]>([
    ['*', true],
    ['example.com', true],
    ['.example.com', true],
    ['*.example.com', true],
    ['api.example.com', true],
    ['api.example.com:6443', true],
    ['api.example.com:443', false],
    ['ample.com', false],
    ['.api.example.com', false],
    ['other.com, Example.COM', true],
    ['', false],
  ])('NO_PROXY %j exempts api.example.com:6443: %s', (noProxy, exempt) => {
    expect(proxyFor(server, undefined, { HTTPS_PROXY: 'http://p', NO_PROXY: noProxy }) === undefined).toBe(exempt);
  });

  test.each<[string, boolean]>([
    ['10.1.0.0/16', true],
    ['10.2.0.0/16', false],
    ['10.1.2.3', true],
    ['10.1.2.3/32', true],
    ['0.0.0.0/0', true],
  ])('NO_PROXY %j exempts 10.1.2.3: %s', (noProxy, exempt) => {
    expect(proxyFor(new URL('https://10.1.2.3'), undefined, { HTTPS_PROXY: 'http://p', NO_PROXY: noProxy }) === undefined).toBe(exempt);
  });

  test('a proxy that kf cannot use is named without its password', () => {
    expect(() => proxyFor(server, 'socks5://me:secret@s:1080', {})).toThrow('The proxy socks5://s:1080 is of a kind');
  });
});
