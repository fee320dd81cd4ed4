// Who may import whom. `npm run check:layers` holds the tree to it; CONTRIBUTING.md draws it.
const layer = (name, from, to, comment) => ({ name, severity: 'error', comment, from, to });

/** Rooms side by side, from the ground up: each knows its own parts and the rooms before it, never one after it. */
const oneDirection = (place, rooms) =>
  rooms
    .slice(0, -1)
    .map((room, at) =>
      layer(
        `${place.replaceAll('/', '-')}-${room}-knows-what-is-below`,
        { path: `^src/${place}/${room}/` },
        { path: `^src/${place}/(${rooms.slice(at + 1).join('|')})/` },
        'rooms know each other in one direction',
      ),
    );

const controllerRooms = ['certificates', 'names', 'registry', 'services', 'builds', 'tenancy', 'apps', 'rollout', 'routes', 'tasks'];
const opsRooms = ['registry', 'instances', 'tenancy', 'services', 'routes', 'builds', 'apps', 'why', 'push', 'install', 'v3'];

export default {
  forbidden: [
    ...oneDirection('controller', controllerRooms),
    ...oneDirection('lib/ops', opsRooms),
    layer(
      'controller-runtime-knows-no-domain',
      { path: '^src/controller/(runtime|instances)/' },
      { path: `^src/controller/(${controllerRooms.join('|')})/` },
      'machinery below, domains above',
    ),
    layer('no-circular', {}, { circular: true }, 'a cycle hides the direction of a dependency'),
    layer('commands-are-leaves', { pathNot: '^(src/commands|test)/' }, { path: '^src/commands/' }, 'nothing but a test imports a command'),
    layer('commands-do-not-import-commands', { path: '^src/commands/' }, { path: '^src/commands/' }, 'share through lib/ops'),
    layer(
      'commands-see-ops-and-output-only',
      { path: '^src/commands/' },
      { path: '^src/lib/(kube|oci|source|logs|manifest)/|^src/(controller|templates)/' },
      'commands parse, call an op, print',
    ),
    layer(
      'ops-do-not-print',
      { path: '^src/lib/(ops|kube|oci|source|logs|manifest|api)/' },
      { path: '^src/lib/(output|views)/' },
      'ops return data',
    ),
    layer(
      'views-are-pure',
      { path: '^src/lib/views/' },
      { path: '^src/lib/(kube|oci|source|manifest)/|^src/lib/ops/|^src/(controller|templates)/' },
      'a view turns a result or an event into lines',
    ),
    layer(
      'pure-layers',
      { path: '^src/(lib/(api|manifest|migration|v3)|templates)/', pathNot: '^src/lib/manifest/read' },
      { path: '^src/lib/(kube|oci|source|logs|ops|output)/|^src/controller/' },
      'no I/O in api, manifest, migration, v3, templates',
    ),
    layer(
      'adapters-do-not-know-ops',
      { path: '^src/lib/(kube|oci|gate|source|logs|session)/' },
      { path: '^src/lib/ops/' },
      'adapters are below ops',
    ),
    layer('oci-knows-no-cluster', { path: '^src/lib/(oci|source)/' }, { path: '^src/lib/(kube|api)/' }, 'oci could be its own package'),
    layer(
      'controller-is-not-a-cli',
      { path: '^src/controller/' },
      { path: '^src/(commands|lib/(ops|output|views|logs|manifest|session))/' },
      'no CLI code in the controller',
    ),
    layer('cli-knows-no-controller', { path: '^src/(commands|lib)/' }, { path: '^src/controller/' }, 'they meet only through the cluster'),
    layer(
      'controller-asks-for-instances',
      { path: '^src/controller/', pathNot: '^src/controller/((instances|builds|tasks)/|(sources|tenancy/namespaces)[.])' },
      { path: '^src/lib/api/pod-kind[.]' },
      'apps have instances, which another place than a pod may run; only builds and tasks are pods for themselves',
    ),
    layer(
      'cli-asks-for-instances',
      { path: '^src/(commands|lib)/', pathNot: '^src/lib/(api|logs|ops/(instances|install|registry))/' },
      { path: '^src/lib/api/pod-kind[.]' },
      'instances of apps are read in lib/ops/instances; setup and the registry look at pods of kf itself',
    ),
    layer(
      'one-door-to-kubernetes',
      { path: '^src/', pathNot: '^src/lib/kube/' },
      { path: 'node_modules/(@kubernetes/client-node|ws/)' },
      'through lib/kube only',
    ),
    layer(
      'one-door-to-oclif',
      { path: '^src/', pathNot: '^src/(commands/|main|base-command|declared|flags|plugins|api)|^src/lib/output/' },
      { path: 'node_modules/@oclif/' },
      'lib runs without oclif',
    ),
    layer(
      'one-door-to-the-terminal',
      { path: '^src/', pathNot: '^src/lib/output/' },
      { path: 'node_modules/(ora|chalk|cli-table3)' },
      'in lib/output',
    ),
    layer('shipped-code-knows-no-test', { path: '^src/' }, { path: '^test/' }, 'tests import the code, never the other way'),
    layer('shipped-code-knows-no-tool', { path: '^src/' }, { path: '^tools/' }, 'tools import the code, never the other way'),
    layer('tools-know-no-test', { path: '^tools/' }, { path: '^test/' }, 'the cluster tool is a program of its own'),
  ],
  options: {
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(dist|test/fixtures)/' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] },
  },
};
