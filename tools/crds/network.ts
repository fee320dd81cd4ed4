// Domains, routes and security groups. Fields: contract 4.7, 4.8, 4.15; rules: contract 12 and 16.4.

import {
  age,
  boolean,
  column,
  createdAt,
  immutable,
  int32,
  list,
  listBy,
  map,
  named,
  object,
  oneOf,
  rules,
  string,
  updatedAt,
} from './schema.ts';
import type { Kind, Rule } from './schema.ts';
import { code, localReference, objectReference, statusOf } from './shared.ts';

const domain: Kind = {
  kind: 'CFDomain',
  plural: 'cfdomains',
  description: 'A domain that routes can be made on.',
  columns: [column('Domain Name', '.spec.name'), createdAt, updatedAt, age],
  spec: object(
    {
      'name!': string({
        maxLength: 254,
        ...rules(
          {
            rule: String.raw`self.matches('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?[.])+[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?[.]?$')`,
            message: 'A domain is written in full, in lower case, for example apps.example.com',
          },
          { rule: 'self == oldSelf', message: 'The name of a domain cannot be changed; delete the domain and create it again' },
        ),
      }),
      internal: boolean({
        description: 'its names lead to instances themselves, and not through the gateway',
        ...immutable('A domain stays internal or not; delete it and create it again'),
      }),
      httpRedirect: boolean({ description: 'requests with http are redirected to https' }),
      org: string({ minLength: 1, maxLength: 63, description: 'GUID of the org that it belongs to; without it all orgs share the domain' }),
      sharedWith: list(string({ minLength: 1, maxLength: 63 }), {
        maxItems: 1000,
        description: 'GUIDs of other orgs whose spaces may use the domain of an org',
      }),
    },
    rules({
      rule: '(has(self.org) ? self.org : "") == (has(oldSelf.org) ? oldSelf.org : "")',
      message: 'The org of a domain cannot be changed; delete the domain and create it again',
    }),
  ),
  status: statusOf({
    certificate: named('DomainCertificate', object({ 'issuer!': string({ maxLength: 256 }), 'notAfter!': string({ maxLength: 64 }) }, {})),
  }),
};

const port = int32({ minimum: 1, maximum: 65_535 });

const destination = named(
  'RouteDestination',
  object({
    'guid!': string({ maxLength: 63 }),
    'appRef!': localReference(),
    'processType!': string({ maxLength: 63 }),
    port,
    protocol: oneOf('http1', 'http2'),
  }),
);

const routeOwner = named(
  'RouteOwner',
  object(
    {
      'space!': string({ maxLength: 63, description: 'GUID of its space' }),
      'route!': string({ maxLength: 253, description: 'its GUID' }),
      'uid!': string({ maxLength: 64, description: 'metadata.uid of its CFRoute: another route that gets its GUID is not meant' }),
    },
    { description: 'the route of another space that has the address; this one only adds destinations to it' },
  ),
);

const textOf = (object: string, key: string) => `(has(${object}.${key}) ? ${object}.${key} : "")`;
const unchanged = (key: string, noun: string): Rule => ({
  rule: `${textOf('self', key)} == ${textOf('oldSelf', key)}`,
  message: `The ${noun} of a route cannot be changed; create another route and map it`,
});

const route: Kind = {
  kind: 'CFRoute',
  plural: 'cfroutes',
  description: 'An address (host, domain, path) and the app processes behind it.',
  columns: [
    column('URI', '.status.uri'),
    createdAt,
    updatedAt,
    age,
    { name: 'AppGUIDs', jsonPath: '.metadata.annotations.korifi\\.cloudfoundry\\.org/app-guids', priority: 1 },
  ],
  spec: object(
    {
      host: string({
        maxLength: 63,
        ...rules({
          rule: `self == "" || self.matches('^([a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?|[*])$')`,
          message: "A host consists of letters, digits and '-' and neither begins nor ends with '-'; '*' alone takes every host",
        }),
      }),
      path: string({
        maxLength: 128,
        ...rules(
          { rule: 'self == "" || self.startsWith("/")', message: "A path begins with '/'" },
          { rule: 'self != "/"', message: "The path '/' is the same as no path; leave it out" },
          { rule: '!self.contains("?")', message: "A path cannot contain '?'" },
          {
            rule: `self.matches("^[-A-Za-z0-9._~!$&'()*+,;=:@%/?]*$")`,
            message: 'A path consists of characters that a URL may contain; write others percent-encoded',
          },
        ),
      }),
      protocol: oneOf('http', 'tcp'),
      'domainRef!': objectReference(
        rules({ rule: 'has(self.name) && self.name != ""', message: 'A route needs a domain (domainRef.name)' }),
      ),
      destinations: listBy('guid', destination),
      sharedWith: list(string({ minLength: 1, maxLength: 63 }), {
        maxItems: 20,
        description: 'GUIDs of other spaces whose routes with sharedFrom may lead this address to apps of theirs',
      }),
      sharedFrom: routeOwner,
    },
    rules(
      { rule: `(has(self.protocol) && self.protocol == "tcp") || ${textOf('self', 'host')} != ""`, message: 'A route needs a host' },
      unchanged('host', 'host'),
      unchanged('path', 'path'),
      unchanged('protocol', 'protocol'),
      unchanged('domainRef.name', 'domain'),
      {
        rule: 'has(self.sharedFrom) == has(oldSelf.sharedFrom) && (!has(self.sharedFrom) || self.sharedFrom == oldSelf.sharedFrom)',
        message: 'The owner of a shared route cannot be changed; share it again',
      },
      {
        rule: '!has(self.sharedFrom) || !has(self.sharedWith) || self.sharedWith.size() == 0',
        message: 'Only the space that owns a route shares it',
      },
    ),
  ),
  status: statusOf({ fqdn: string({ maxLength: 512 }), uri: string({ maxLength: 1024 }), destinations: listBy('guid', destination) }),
};

const placement = object({ 'running!': boolean(), 'staging!': boolean() });
const icmp = '(self.protocol == "icmp" || self.protocol == "icmpv6")';

const securityGroup: Kind = {
  kind: 'CFSecurityGroup',
  plural: 'cfsecuritygroups',
  description: 'Rules for what apps may connect to.',
  columns: [createdAt, updatedAt, column('DisplayName', '.spec.displayName')],
  spec: object({
    'displayName!': string({ minLength: 1, maxLength: 255 }),
    globallyEnabled: placement,
    spaces: map(placement, { maxProperties: 1000 }),
    'rules!': list(
      object(
        {
          'protocol!': oneOf('tcp', 'udp', 'icmp', 'icmpv6', 'all'),
          'destination!': string({ maxLength: 4096 }),
          ports: string({ maxLength: 4096 }),
          type: code,
          code,
          description: string({ maxLength: 1024 }),
          log: boolean(),
        },
        rules(
          {
            rule: '!(self.protocol == "tcp" || self.protocol == "udp") || (has(self.ports) && self.ports != "")',
            message: 'A rule for tcp or udp needs ports',
          },
          { rule: 'self.protocol != "all" || !has(self.ports) || self.ports == ""', message: 'A rule for all protocols cannot name ports' },
          { rule: `${icmp} || (!has(self.type) && !has(self.code))`, message: 'Only a rule for icmp can have type and code' },
          {
            rule: `self.destination.matches('^[0-9.,/ -]+$')`,
            message: 'A destination is an IPv4 address, a CIDR or a range, or several of them with commas between',
          },
        ),
      ),
      { maxItems: 1000 },
    ),
  }),
  status: statusOf(),
};

const peer = named(
  'AppNetworkPeer',
  object({
    'space!': string({ maxLength: 63, description: 'GUID of its space' }),
    'app!': string({ maxLength: 63, description: 'its GUID' }),
    'uid!': string({ maxLength: 64, description: 'metadata.uid of its CFApp: another app that gets its GUID is not meant' }),
  }),
);

const networkPolicy: Kind = {
  kind: 'CFNetworkPolicy',
  plural: 'cfnetworkpolicies',
  description:
    'One half of a network policy: what an app of this space connects to, or what it accepts. Both halves together allow a connection.',
  columns: [column('AppGUID', '.spec.appRef.name'), column('Direction', '.spec.direction'), column('Peer', '.spec.peer.app'), age],
  spec: object(
    {
      'appRef!': localReference(),
      'direction!': oneOf('connects', 'accepts'),
      'peer!': peer,
      'protocol!': oneOf('tcp', 'udp'),
      'port!': { ...port, description: 'of the app that accepts the connection' },
      endPort: { ...port, description: 'last port of a range' },
    },
    rules(
      { rule: '!has(self.endPort) || self.endPort > self.port', message: 'The last port of a range is greater than its first one' },
      { rule: 'self == oldSelf', message: 'A network policy cannot be changed; delete it and create another one' },
    ),
  ),
};

export const networkKinds: Kind[] = [route, domain, securityGroup, networkPolicy];
