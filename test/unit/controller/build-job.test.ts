import { describe, expect, test } from 'vitest';
import type { Container } from '../../../src/lib/api/pod.ts';
import { buildJob } from '../../../src/templates/build-job.ts';
import type { BuildJobInput } from '../../../src/templates/build-job.ts';
import { shellWord } from '../../../src/templates/build-scripts.ts';

const input: BuildJobInput = {
  name: 'b-1',
  namespace: 's',
  appGuid: 'a-1',
  owner: { apiVersion: 'x/v1', kind: 'BuildWorkload', name: 'b-1', uid: 'u' },
  builderImage: 'builder',
  nodeImage: 'node',
  uid: 1001,
  gid: 1002,
  source: 'r.svc:5000/s/a-1-packages@sha256:aa',
  registryHost: 'r.svc:5000',
  lifecycle: {
    target: 'r.svc:5000/s/a-1-droplets:b-1',
    runImage: 'run',
    previousImage: 'r.svc:5000/s/a-1-droplets@sha256:bb',
    insecureRegistries: ['r.svc:5000'],
  },
  registrySecret: 'b-1-registry',
  fetchConfigMap: 'kf-fetch',
  env: [
    { name: 'LITERAL', value: 'x' },
    { name: 'SECRET', valueFrom: { secretKeyRef: { name: 'env', key: 'K' } } },
    { name: 'MAYBE', valueFrom: { secretKeyRef: { name: 'vcap', key: 'MAYBE', optional: true } } },
  ],
  literalEnvSecret: 'b-1-literals',
  bindings: ['db'],
  pullSecrets: ['pull'],
  memoryMB: 1024,
  diskMB: 2048,
  timeoutSeconds: 900,
};
const pod = buildJob(input).spec?.template.spec;
const container = (name: string): Container => pod?.containers.find((one) => one.name === name) ?? { name };
const mounts = (name: string): string[] => (container(name).volumeMounts ?? []).map((mount) => mount.name).toSorted();

describe('the build Job', () => {
  test('runs one pod once, keeps its log after a timeout, and gets no account token', () => {
    expect(buildJob(input).spec).toMatchObject({ backoffLimit: 0, completions: 1, ttlSecondsAfterFinished: 21600 });
    expect(buildJob(input).spec).not.toHaveProperty('activeDeadlineSeconds');
    expect(pod).toMatchObject({
      activeDeadlineSeconds: 900,
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      shareProcessNamespace: false,
    });
    expect(buildJob(input).spec?.template.metadata?.annotations).toEqual({ 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' });
  });

  test('gives the registry credential to the source and registry containers only, and to no environment', () => {
    expect(mounts('source')).toEqual(['fetch', 'hand', 'registry', 'workspace']);
    expect(mounts('registry')).toEqual(['hand', 'layers', 'registry', 'release', 'workspace']);
    expect(container('build').volumeMounts?.find(({ name }) => name === 'hand')?.readOnly).toBe(true);
    expect(mounts('build')).toEqual(['binding-0', 'hand', 'layers', 'platform-env', 'workspace']);
    expect(JSON.stringify(pod?.containers)).not.toContain('b-1-registry');
    expect(JSON.stringify(container('build'))).not.toMatch(/kf\/registry|secretKeyRef|CNB_REGISTRY_AUTH/);
  });

  test('meets PodSecurity restricted in every container', () => {
    expect(pod?.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 1001,
      runAsGroup: 1002,
      fsGroup: 1002,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    for (const container of pod?.containers ?? [])
      expect(container.securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
        runAsNonRoot: true,
      });
    expect(pod?.volumes?.every((volume) => volume.hostPath === undefined)).toBe(true);
  });

  test('contains the build environment as files, never as variables of a container', () => {
    const sources = pod?.volumes?.find((volume) => volume.name === 'platform-env')?.projected?.sources;
    expect(sources).toEqual([
      { secret: { name: 'b-1-literals', items: [{ key: 'LITERAL', path: 'LITERAL' }] } },
      { secret: { name: 'env', items: [{ key: 'K', path: 'SECRET' }], optional: false } },
      { secret: { name: 'vcap', items: [{ key: 'MAYBE', path: 'MAYBE' }], optional: true } },
    ]);
    expect((container('build').env ?? []).map((variable) => variable.name)).toEqual([
      'CNB_PLATFORM_API',
      'CNB_NO_COLOR',
      'CNB_USER_ID',
      'CNB_GROUP_ID',
    ]);
  });

  test('limits the memory of the build container and the disk space that it can write', () => {
    expect(container('build').resources).toMatchObject({ limits: { memory: '1024Mi' } });
    // The limit for files outside of the volumes. No node reserves this space for a build, which otherwise would request its whole limit.
    for (const name of ['source', 'registry', 'build'])
      expect(container(name).resources).toMatchObject({
        requests: { 'ephemeral-storage': '0' },
        limits: { 'ephemeral-storage': '2048Mi' },
      });
    expect(pod?.volumes?.find((volume) => volume.name === 'layers')?.emptyDir).toEqual({ sizeLimit: '2048Mi' });
  });

  test('passes images and registries to the lifecycle as single words', () => {
    const script = container('registry').command?.[2] ?? '';
    expect(script).toContain(
      '-insecure-registry=r.svc:5000 -run-image=run -previous-image=r.svc:5000/s/a-1-droplets@sha256:bb r.svc:5000/s/a-1-droplets:b-1',
    );
    expect(shellWord("a b'c;$(x)")).toBe(`'a b'\\''c;$(x)'`);
  });
});
