// Admission policies with which the operator of a cluster makes apps of one space fail without a fault of theirs.

import { kubectl } from './kf.ts';
import { applyAsAdmin } from './members.ts';
import { until } from './until.ts';

const apiVersion = 'admissionregistration.k8s.io/v1';

interface PolicyObject {
  kind: string;
  metadata: { name: string };
}

const nameOf = ({ kind, metadata }: PolicyObject): string => `${kind}/${metadata.name}`;

const jsonPatch = (patch: string): object => ({ patchType: 'JSONPatch', jsonPatch: { expression: `[${patch}]` } });

/** Pods of which a container has this limit of memory, as in a manifest of cf: `66M`. */
const ofSize = (memory: string): object => ({
  name: 'size',
  expression: `object.spec.containers.exists(c, string(c.resources.?limits[?'memory'].orValue('')) == '${memory}i')`,
});

export class CausePolicies {
  readonly #space: string;
  readonly #name: string;
  readonly #objects: PolicyObject[] = [];

  /** @param space the GUID of the only space in which they count */
  constructor(space: string) {
    this.#space = space;
    this.#name = `causes-${space}`;
  }

  /** Requests for objects of some kinds in the space. */
  #requests(apiGroups: string[], resources: string[], operations: string[]): object {
    return {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': this.#space } },
      resourceRules: [{ apiGroups, apiVersions: ['*'], resources, operations }],
    };
  }

  #add(kind: 'Mutating' | 'Validating', what: string, spec: object, binding: object): this {
    const metadata = { name: `${this.#name}-${what}` };
    const policy = { apiVersion, kind: `${kind}AdmissionPolicy`, metadata, spec };
    this.#objects.push(policy, {
      ...policy,
      kind: `${kind}AdmissionPolicyBinding`,
      spec: { policyName: metadata.name, ...binding },
    } as PolicyObject);
    return this;
  }

  #change(what: string, matchConstraints: object, condition: object, mutation: object): this {
    return this.#add(
      'Mutating',
      what,
      { matchConstraints, matchConditions: [condition], reinvocationPolicy: 'Never', mutations: [mutation] },
      {},
    );
  }

  #refuse(what: string, spec: object): this {
    return this.#add('Validating', what, spec, { validationActions: ['Deny'] });
  }

  /** Pods of that size are refused with that message. */
  refusesPods(memory: string, message: string): this {
    return this.#refuse('refused', {
      matchConstraints: this.#requests([''], ['pods'], ['CREATE']),
      matchConditions: [ofSize(memory)],
      validations: [{ expression: 'false', message }],
    });
  }

  /** Pods of that size are never given to a scheduler. */
  gatesPods(memory: string): this {
    const gates = '[Object.spec.schedulingGates{name: "example.com/never"}]';
    return this.#change('gated', this.#requests([''], ['pods'], ['CREATE']), ofSize(memory), {
      patchType: 'ApplyConfiguration',
      applyConfiguration: { expression: `Object{spec: Object.spec{schedulingGates: ${gates}}}` },
    });
  }

  /** Pods of that size get a volume of a claim that does not exist. */
  addsMissingVolume(memory: string, claim: string): this {
    const volume = `Object.spec.volumes{name: "shared", persistentVolumeClaim: Object.spec.volumes.persistentVolumeClaim{claimName: "${claim}"}}`;
    return this.#change('volume', this.#requests([''], ['pods'], ['CREATE']), ofSize(memory), {
      patchType: 'ApplyConfiguration',
      applyConfiguration: { expression: `Object{spec: Object.spec{volumes: [${volume}]}}` },
    });
  }

  /** HTTPRoutes of hosts with that beginning ask for a listener that the gateway does not have. */
  movesRoutes(hostPrefix: string): this {
    return this.#change(
      'route',
      this.#requests(['gateway.networking.k8s.io'], ['httproutes'], ['CREATE', 'UPDATE']),
      { name: 'host', expression: `object.spec.hostnames.exists(host, host.startsWith('${hostPrefix}'))` },
      jsonPatch('JSONPatch{op: "add", path: "/spec/parentRefs/0/sectionName", value: "not-there"}'),
    );
  }

  /** Pods of builds get another deadline. */
  shortensBuilds(seconds: number): this {
    return this.#change(
      'build',
      this.#requests(['batch'], ['jobs'], ['CREATE']),
      { name: 'deadline', expression: 'has(object.spec.template.spec.activeDeadlineSeconds)' },
      jsonPatch(`JSONPatch{op: "replace", path: "/spec/template/spec/activeDeadlineSeconds", value: ${String(seconds)}}`),
    );
  }

  /** Events with that reason are lost. */
  losesEvents(reason: string): this {
    return this.#refuse('events', {
      matchConstraints: this.#requests(['', 'events.k8s.io'], ['events'], ['CREATE', 'UPDATE']),
      validations: [{ expression: `object.reason != '${reason}'`, message: 'nobody wants to read that' }],
    });
  }

  /**
   * Applies the policies, and returns when they are in force. The API server reads them some time after it has stored them, in the order in which
   * they came: the two that are added here as the last ones change a ConfigMap and refuse what was changed.
   */
  async apply(): Promise<void> {
    const probe = 'in-force';
    const requests = this.#requests([''], ['configmaps'], ['CREATE']);
    const condition = { name: 'probe', expression: `object.metadata.name == '${probe}'` };
    this.#change(probe, requests, condition, {
      patchType: 'ApplyConfiguration',
      applyConfiguration: { expression: 'Object{metadata: Object.metadata{labels: {"changed": "yes"}}}' },
    });
    this.#refuse(probe, {
      matchConstraints: requests,
      matchConditions: [condition],
      validations: [
        { expression: "object.metadata.?labels[?'changed'].orValue('') != 'yes'", message: 'both kinds of policies are in force' },
      ],
    });
    await applyAsAdmin(...this.#objects);
    await until('policies that are in force', async () => {
      const create = kubectl('create', 'configmap', probe, '-n', this.#space, '--dry-run=server');
      return create.then(() => false).catch((error: unknown) => String(error).includes('are in force'));
    });
  }

  async remove(): Promise<void> {
    await kubectl('delete', ...this.#objects.map(nameOf), '--ignore-not-found');
  }
}
