// Every kind, label, annotation, finalizer, field manager, condition and reason of kf.

import { resource } from './object.ts';
import type { KubeObject, ResourceType } from './object.ts';
import type {
  AppWorkload,
  BuilderInfo,
  BuildWorkload,
  CFApp,
  CFBuild,
  CFDomain,
  CFFeatureFlag,
  CFNetworkPolicy,
  CFOrg,
  CFPackage,
  CFProcess,
  CFQuota,
  CFRoute,
  CFSecurityGroup,
  CFServiceBinding,
  CFServiceBroker,
  CFServiceInstance,
  CFServiceOffering,
  CFServicePlan,
  CFSpace,
  CFTask,
  RunnerInfo,
  TaskWorkload,
} from './types.generated.ts';

/** The API group, taken over from Korifi. */
export const group = 'korifi.cloudfoundry.org';
export const version = 'v1alpha1';

/**
 * Value of annotation creation-version: the version of the contract that our objects follow, not kf's own. Readers of the contract refuse rolling
 * deployments of workloads with v0.7.1 or less.
 */
export const contractVersion = 'v0.18.0';

const kind = <T extends KubeObject>(name: string, plural: string): ResourceType<T> => resource<T>(group, version, name, plural);

/** The kinds of the group. Core kinds are in core.ts. */
export const kinds = {
  org: kind<CFOrg>('CFOrg', 'cforgs'),
  space: kind<CFSpace>('CFSpace', 'cfspaces'),
  /** kf's own; Korifi has no quotas. */
  quota: kind<CFQuota>('CFQuota', 'cfquotas'),
  app: kind<CFApp>('CFApp', 'cfapps'),
  package: kind<CFPackage>('CFPackage', 'cfpackages'),
  build: kind<CFBuild>('CFBuild', 'cfbuilds'),
  process: kind<CFProcess>('CFProcess', 'cfprocesses'),
  task: kind<CFTask>('CFTask', 'cftasks'),
  route: kind<CFRoute>('CFRoute', 'cfroutes'),
  domain: kind<CFDomain>('CFDomain', 'cfdomains'),
  networkPolicy: kind<CFNetworkPolicy>('CFNetworkPolicy', 'cfnetworkpolicies'),
  securityGroup: kind<CFSecurityGroup>('CFSecurityGroup', 'cfsecuritygroups'),
  serviceInstance: kind<CFServiceInstance>('CFServiceInstance', 'cfserviceinstances'),
  serviceBinding: kind<CFServiceBinding>('CFServiceBinding', 'cfservicebindings'),
  serviceBroker: kind<CFServiceBroker>('CFServiceBroker', 'cfservicebrokers'),
  serviceOffering: kind<CFServiceOffering>('CFServiceOffering', 'cfserviceofferings'),
  servicePlan: kind<CFServicePlan>('CFServicePlan', 'cfserviceplans'),
  buildWorkload: kind<BuildWorkload>('BuildWorkload', 'buildworkloads'),
  appWorkload: kind<AppWorkload>('AppWorkload', 'appworkloads'),
  taskWorkload: kind<TaskWorkload>('TaskWorkload', 'taskworkloads'),
  builderInfo: kind<BuilderInfo>('BuilderInfo', 'builderinfos'),
  runnerInfo: kind<RunnerInfo>('RunnerInfo', 'runnerinfos'),
  /** kf's own; Korifi has no feature flags. */
  featureFlag: kind<CFFeatureFlag>('CFFeatureFlag', 'cffeatureflags'),
} as const;

const korifi = <T extends string>(name: T): `korifi.cloudfoundry.org/${T}` => `korifi.cloudfoundry.org/${name}`;
const kf = <T extends string>(name: T): `kf.cloudfoundry.org/${T}` => `kf.cloudfoundry.org/${name}`;

/** Label keys (Korifi's, and those of kf: docs/internals.md). */
export const labels = {
  guid: korifi('guid'),
  createdAt: korifi('created_at'),
  updatedAt: korifi('updated_at'),
  spaceGuid: korifi('space-guid'),
  spaceName: korifi('space-name'),
  orgGuid: korifi('org-guid'),
  orgName: korifi('org-name'),
  ready: korifi('ready'),
  appGuid: korifi('app-guid'),
  appRev: korifi('app-rev'),
  displayName: korifi('display-name'),
  deploymentStatus: korifi('deployment-status'),
  packageGuid: korifi('package-guid'),
  packageState: korifi('package-state'),
  dropletGuid: korifi('droplet-guid'),
  buildGuid: korifi('build-guid'),
  buildState: korifi('build-state'),
  buildWorkloadName: korifi('build-workload-name'),
  processGuid: korifi('process-guid'),
  processType: korifi('process-type'),
  version: korifi('version'),
  appWorkloadGuid: korifi('appworkload-guid'),
  domainGuid: korifi('domain-guid'),
  domainName: korifi('domain-name'),
  routeGuid: korifi('route-guid'),
  routeHost: korifi('route-host'),
  routePath: korifi('route-path'),
  unmapped: korifi('unmapped'),
  taskGuid: korifi('task-guid'),
  taskSequenceId: korifi('task-sequence-id'),
  /** Of a CFApp or CFSpace, set by users: how a change that asks for no strategy replaces the instances. */
  strategy: kf('strategy'),
  planGuid: korifi('plan-guid'),
  serviceInstanceGuid: korifi('service-instance-guid'),
  serviceInstanceType: korifi('service-instance-type'),
  serviceBindingType: korifi('service-binding-type'),
  serviceOfferingName: korifi('service-offering-name'),
  servicePlanName: korifi('service-plan-name'),
  servicePlanAvailable: korifi('service-plan-available'),
  serviceBrokerDisplayName: korifi('service-broker-display-name'),
  provisionedService: 'servicebinding.io/provisioned-service',
  propagatedFrom: 'cloudfoundry.org/propagated-from',
  roleGuid: 'cloudfoundry.org/role-guid',
  podIndex: 'apps.kubernetes.io/pod-index',
  /** `disabled` on a CFApp, a CFSpace or the namespace of a space: nobody opens shells in its instances. */
  ssh: kf('ssh'),
  /** `kf` on every namespace that kf created. */
  managedBy: kf('managed-by'),
  /** `setup` on everything that `kf setup` applied. */
  partOf: kf('part-of'),
  generation: kf('generation'),
} as const;

/** The ResourceQuota of each org and space. */
export const limitsName = 'kf-limits';

/** The ResourceQuota for the app instances of a space, in spaces where a CFQuota limits them. */
export const instanceLimitsName = 'kf-instances';

/** Annotation keys (Korifi's, and those of kf: docs/internals.md). */
export const annotations = {
  appRev: korifi('app-rev'),
  lastStopAppRev: korifi('last-stop-app-rev'),
  creationVersion: korifi('creation-version'),
  appGuids: korifi('app-guids'),
  serviceInstanceType: korifi('service-instance-type'),
  applicationId: korifi('application-id'),
  version: korifi('version'),
  processGuid: korifi('process-guid'),
  orgName: korifi('org-name'),
  spaceName: korifi('space-name'),
  propagateRole: 'cloudfoundry.org/propagate-cf-role',
  propagateServiceAccount: 'cloudfoundry.org/propagate-service-account',
  propagateDeletion: 'cloudfoundry.org/propagate-deletion',
  changedBy: kf('changed-by'),
  contentHash: kf('content-hash'),
  /** Of a CFPackage: the git commit and the run of a CI system that it was pushed from. */
  commit: kf('commit'),
  ciRun: kf('ci-run'),
  pushId: kf('push-id'),
  pushStarted: kf('push-started'),
  buildKey: kf('build-key'),
  envSecret: kf('env-secret'),
  /** Of a CFServiceBinding: the version of its instance, including credentials, that its Secrets contain. */
  instanceVersion: kf('instance-version'),
  /** Of a CFServiceBinding: when `kf/changed-by` was about to delete it (RFC 3339). */
  unbinding: kf('unbinding'),
  /** `true` on a CFServiceInstance whose Secret something else maintains, with a key for each credential. */
  fromSecret: kf('from-secret'),
  /** Of a CFApp: the CFPackage that was pushed with `--no-start` and waits for its first build, and the droplet at that time. */
  unstaged: kf('unstaged'),
  /** Of a CFApp: the CFPackage that was pushed last, and the newest one at that time; left out when it is the newest. */
  package: kf('package'),
  applying: kf('applying'),
  /** Of a CFApp: the change of the app since which its variables or services differ from those of its instances. It holds until the app has another change. */
  unapplied: kf('unapplied'),
  deployId: kf('deploy-id'),
  liveHash: kf('live-hash'),
  /** `true` on an AppWorkload that has an instance more than wanted, while the wanted one leaves its node. */
  spare: kf('spare'),
  /** Of a CFProcess: the change of its app up to which settings wait for the next start. */
  held: kf('held'),
  /** Of a CFApp: `VERSION/DEPLOY-ID` of its last rollback. */
  rolledBack: kf('rolled-back'),
  /** Of a ResourceQuota: the limits that the controller last wrote, as JSON. */
  defaultLimits: kf('default-limits'),
  /** Of a CFOrg or CFSpace: the GUID of its CFQuota. */
  quota: kf('quota'),
  /** Of a ResourceQuota: the CFQuotas in force when the controller last wrote it, as JSON. */
  quotas: kf('quotas'),
  /** Of the namespace of a space: the memory that one instance may have, in megabytes, and the quota that says so; a policy refuses more. */
  instanceMemory: kf('instance-memory-mb'),
  instanceMemoryQuota: kf('instance-memory-quota'),
  /** Of a ResourceQuota without limits: it only makes the cluster count the objects of its namespace. */
  countsUse: kf('counts-use'),
  /** Of the RunnerInfo of the controller: the pod that leads, and when it last renewed its Lease (RFC 3339 with microseconds). Policies read both. */
  leader: kf('leader'),
  leaderRenewed: kf('leader-renewed'),
  /** Of the same object: since when the leader has got all changes without a gap (RFC 3339). The next leader knows it from there. */
  steadySince: kf('steady-since'),
  /** How many instances a rollout replaces at a time; default 1. */
  maxInFlight: kf('max-in-flight'),
  /** Of a build's pod: how the build container ended; the controller writes it after the kubelet has reported the end. */
  buildEnded: kf('build-ended'),
  /** Of a TaskWorkload and its pod: the task's name for people, which its log lines show. */
  taskName: kf('task-name'),
  imageNotRead: kf('image-not-read'),
  /** Of a namespace: the uid of the CFOrg or CFSpace for which it was created. */
  ownerUid: kf('owner-uid'),
  revision: kf('revision'),
  /** Of ConfigMap kf-info: what a kf must know to set this cluster up again; policy `kf-versions` compares it. */
  setupFormat: kf('setup-format'),
  /** Of a Secret with an app's variables that was made again after it was gone: the change that started the app last, with those of before. */
  variablesLost: kf('variables-lost'),
  /** `allowed` on a route for every host of a domain: a policy lets only operators set it. */
  wildcard: kf('wildcard'),
  /** Of a CFRoute that moves: `SPACE-GUID/NAME` of the only CFRoute that may take its host. */
  movesTo: kf('moves-to'),
  leaseEntityType: 'coordination.cloudfoundry.org/entity-type',
  leaseNamespace: 'coordination.cloudfoundry.org/namespace',
  leaseName: 'coordination.cloudfoundry.org/name',
  leaseOwnerNamespace: 'coordination.cloudfoundry.org/owner-namespace',
  leaseOwnerName: 'coordination.cloudfoundry.org/owner-name',
} as const;

/** Our finalizers; `foreign` are the contract's others (2.4), which are removed when found. */
export const finalizers = {
  org: 'cfOrg.korifi.cloudfoundry.org',
  space: 'cfSpace.korifi.cloudfoundry.org',
  serviceInstance: 'cfServiceInstance.korifi.cloudfoundry.org',
  serviceBinding: 'cfServiceBinding.korifi.cloudfoundry.org',
  foreign: [
    'cfApp.korifi.cloudfoundry.org',
    'cfDomain.korifi.cloudfoundry.org',
    'korifi.cloudfoundry.org/cfPackageController',
    'appWorkload.korifi.cloudfoundry.org',
    'kpack-image-builder.korifi.cloudfoundry.org/buildworkload',
    'cfRoute.korifi.cloudfoundry.org',
  ],
} as const;

/** Condition types. */
export const conditionTypes = {
  ready: 'Ready',
  claimed: 'Claimed',
  /** Of a route: the gateway has loaded its present form. */
  programmed: 'Programmed',
  initialized: 'Initialized',
  staging: 'Staging',
  succeeded: 'Succeeded',
  started: 'Started',
  failed: 'Failed',
  canceled: 'Canceled',
  /** Of a space: as its label says, and enforced. */
  sshAllowed: 'SSHAllowed',
  /** Of a domain: the gateway shows the certificate that cert-manager has issued for it, and not kf's own. */
  certificateIssued: 'CertificateIssued',
  /** Of an AppWorkload: all Secrets that its next container needs exist. */
  whole: 'Whole',
} as const;

/** Condition reasons that are used in more than one place. */
export const reasons = {
  ready: 'Ready',
  claimed: 'Claimed',
  duplicateName: 'DuplicateName',
  guidTaken: 'GuidTaken',
  namespaceNotOurs: 'NamespaceNotOurs',
  wildcardNotAllowed: 'WildcardNotAllowed',
  loaded: 'Loaded',
  notAnswered: 'NotAnswered',
  appDoesNotAnswer: 'AppDoesNotAnswer',
  protocolNotSupported: 'ProtocolNotSupported',
  initialized: 'Initialized',
  unknown: 'Unknown',
  bindingNotReady: 'BindingNotReady',
  environmentLost: 'EnvironmentLost',
  dropletNotAssigned: 'DropletNotAssigned',
  cannotResolveDroplet: 'CannotResolveCurrentDropletRef',
  desiredStateNotReached: 'DesiredStateNotReached',
  processesNotReady: 'ProcessesNotReady',
  invalidProcess: 'InvalidProcess',
  buildRunning: 'BuildRunning',
  buildNotRunning: 'BuildNotRunning',
  buildSucceeded: 'BuildSucceeded',
  buildFailed: 'BuildFailed',
  stagingFailed: 'StagingFailed',
  noBuildpackMatched: 'NoBuildpackMatched',
  sourceFetchFailed: 'SourceFetchFailed',
  registryRefused: 'RegistryRefused',
  builderNotFound: 'BuilderNotFound',
  unschedulable: 'Unschedulable',
  outOfMemory: 'OutOfMemory',
  buildTimeout: 'BuildTimeout',
  nodeLost: 'NodeLost',
  quotaExceeded: 'QuotaExceeded',
  podRefused: 'PodRefused',
  generationRefused: 'GenerationRefused',
  invalidDomainRef: 'InvalidDomainRef',
  notShared: 'NotShared',
  tooManyDestinations: 'TooManyDestinations',
  credentialsSecretNotAvailable: 'CredentialsSecretNotAvailable',
  secretInvalid: 'SecretInvalid',
} as const;

/** `status.deployment.reason` when its phase is Failed. */
export const deploymentFailures = [
  'ImagePull',
  'CreateContainer',
  'Crashed',
  'OutOfMemory',
  'HealthCheckFailed',
  'Unschedulable',
  'QuotaExceeded',
  'RouteNotAccepted',
  'NotServing',
  'StartTimeout',
  'OtherProcessFailed',
  'Unknown',
] as const;
export type DeploymentFailure = (typeof deploymentFailures)[number];

/** Reason of a process that follows another one of its app, which failed, to the version before. */
export const otherProcessFailed: DeploymentFailure = 'OtherProcessFailed';

/** Fixed names and namespaces (docs/internals.md). */
export const places = {
  systemNamespace: 'kf-system',
  nodeNamespace: 'kf-node',
  rootNamespace: 'cf',
  info: 'kf-info',
  infoKey: 'info.json',
  controllerAccount: 'kf-controller',
  /** In the system namespace: the Lease of the controllers, and the RunnerInfo that says who holds it and since when. */
  leaderRecord: 'kf-controller',
  registryService: 'kf-registry',
  /** In the system namespace: environment of every build, a key per variable. */
  installationEnv: 'kf-build-env',
  /** In the system namespace: the request of `kf setup`, kept for the next one. */
  settings: 'kf-setup',
  settingsKey: 'setup.yaml',
  pullSecret: 'image-registry-credentials',
  pushSecret: 'kf-registry-push',
  /** In the system namespace: the authority that signs the gateway's certificate, with its key. */
  authority: 'kf-ca',
  /** In the system namespace: the certificate of the gateway for all domains without one of their own. */
  gatewayCertificate: 'kf-gateway-tls',
  /** In the root namespace: the certificate of the authority, which everybody may read. */
  authorityCertificate: 'kf-ca-certificate',
  builder: 'kf-builder',
  runner: 'kf-runner',
} as const;
