// The JSON schema for editors says the same of a manifest as the parser.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseManifest } from '../../../src/lib/manifest/parse.ts';

const schema = JSON.parse(readFileSync(path.resolve('manifests/manifest.schema.json'), 'utf8')) as object;
const validate = new Ajv({ allowUnionTypes: true, strict: false }).compile(schema);
const app = (body: string): string => `applications:\n- name: shop\n${body.replace(/^/gm, '  ')}`;

function parses(text: string): boolean {
  try {
    parseManifest('manifest.yml', text);
    return true;
  } catch {
    return false;
  }
}

const whole = `path: dist
buildpacks: [nodejs]
stack: kf
env: {A: 1, B: [1, two], C: {d: e}}
services: [db, {name: cache, binding_name: fast}]
routes: [{route: shop.example.com/api, protocol: http2}]
random-route: y
default_route: false
metadata: {labels: {tier: web, old: null}}
features: {ssh: true}
memory: 1.5G
disk_quota: 512MB
instances: '2'
command: null
timeout: 90
health-check-type: http
health-check-http-endpoint: /health
readiness-health-check-type: port
log-rate-limit-per-second: -1
processes: [{type: worker, instances: 0, memory: 64M}]
sidecars: [{name: proxy, command: ./proxy, process_types: [web], memory: 32M}]`;

describe('both accept', () => {
  test.each([
    [app(whole)],
    [app('docker: {image: registry.example.com/shop}')],
    [`version: 1\nx-common: {a: b}\n${app('no-route: true')}`],
  ])('%s', (text) => {
    expect(validate(parse(text)), JSON.stringify(validate.errors)).toBe(true);
    expect(parses(text)).toBe(true);
  });

  test('variables in place of values', () => {
    expect(validate(parse(app('memory: ((size))\ninstances: ((count))\nno-route: ((hidden))\nroutes: ((routes))')))).toBe(true);
  });
});

describe('both refuse', () => {
  test.each([
    ['applications: []'],
    ['version: 2\napplications: [{name: shop}]'],
    ['applications: [{name: "a shop"}]'],
    [app('memory: 256')],
    [app('instances: many')],
    [app('instances: 1001')],
    [app('timeout: 0')],
    [app('no-route: maybe')],
    [app('health-check-type: tcp')],
    [app('health-check-http-endpoint: health')],
    [app('processes: [{memory: 64M}]')],
    [app('processes: worker')],
    [app('routes: [shop.example.com]')],
    [app('services: [{binding_name: fast}]')],
    [app('sidecars: [{name: proxy, process_types: [web]}]')],
    [app('sidecars: [{name: proxy, command: c, process_types: [web], cpu: 1}]')],
    [app('docker: {username: me}')],
    [app('docker: {image: a, tag: b}')],
    [app('lifecycle: kpack')],
  ])('%s', (text) => {
    expect([validate(parse(text)), parses(text)]).toEqual([false, false]);
  });
});
