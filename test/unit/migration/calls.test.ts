import { describe, expect, it } from 'vitest';
import { breaks, callsOf } from '../../../src/lib/migration/calls.ts';

/** `LINE status call`, and below it what there is to know. */
const read = (...lines: string[]): string[] =>
  callsOf(lines.join('\n')).flatMap(({ line, status, call, remarks }) => [
    `${line} ${status} ${call}`,
    ...remarks.map(({ about, status: word }) => `  ${word} ${about}`),
  ]);

describe('a call of cf', () => {
  it.each([
    ['by name, path and version', ['cf apps', '/usr/local/bin/cf apps', './cf apps', 'cf8 apps', 'kf apps'], 5],
    ['by a variable', ['$CF apps', '"${CF_CLI}" apps', '$OTHER apps'], 2],
    ['behind another program', ['sudo cf apps', 'retry 3 cf apps', 'xargs -n1 cf delete', 'env A=b cf push', 'command cf8 apps'], 5],
    [
      'in the text for a shell',
      [`bash -ec 'cd x; cf apps'`, 'eval "cf apps"', 'ssh host <<EOF', 'cf apps', 'EOF', "trap 'cf apps' EXIT"],
      4,
    ],
    ['in what is only printed', ['echo cf push', 'echo "cf push"', 'which cf', 'command -v cf', 'cat <<EOF', 'cf push', 'EOF', 'cd cf'], 0],
    ['in what a printed text substitutes', ['echo "app: $(cf app a)"'], 1],
    ['of a name alone', ['cf', 'brew install cf'], 0],
  ])('is found %s', (_, lines, count) => {
    expect(read(...lines)).toHaveLength(count);
  });

  it.each([
    ['cf push app -p x -i 2 --no-route', ['1 done cf push app -p x -i 2 --no-route']],
    ['cf delete a -fr', ['1 done cf delete a -fr']],
    ['cf delete a --force', ['1 done cf delete a --force']],
    ['cf -v scale a -i3 -m=1G', ['1 done cf -v scale a -i3 -m=1G']],
    ['cf p a', ['1 done cf p a']],
    ['cf push a --strategy rolling', ['1 done cf push a --strategy rolling']],
    ['cf push a --strategy=Canary', ['1 done cf push a --strategy=Canary']],
    ['cf push a -l 1K --task', ['1 refused cf push a -l 1K --task', '  refused -l', '  refused --task']],
    ['cf push a --droplet --task', ['1 refused cf push a --droplet --task', '  refused --droplet']],
    ['cf scale a -l -i', ['1 refused cf scale a -l -i', '  refused -l']],
    ['cf delete-service d -w', ['1 ignored cf delete-service d -w', '  ignored -w']],
    ['cf auth u p', ['1 differs cf auth u p', '  differs auth']],
    ['cf push a -b https://github.com/x/y', ['1 refused cf push a -b https://github.com/x/y', '  refused -b https://github.com/x/y']],
    ['cf push a --buildpack=nodejs', ['1 differs cf push a --buildpack=nodejs', '  differs --buildpack']],
    ['cf push a -b "$BP"', ['1 differs cf push a -b $BP', '  differs -b']],
    ['cf create-org-quota q -l 5M', ['1 refused cf create-org-quota q -l 5M', '  refused -l 5M']],
    ['cf create-org-quota q -l -1', ['1 differs cf create-org-quota q -l -1', '  differs -l']],
    ['cf update-space-quota q -l $L', ['1 differs cf update-space-quota q -l $L', '  differs -l']],
    [
      'cf update-route d -n h -o loadbalancing=hash',
      ['1 refused cf update-route d -n h -o loadbalancing=hash', '  differs update-route', '  refused -o loadbalancing=hash'],
    ],
    ['cf set-env a B -x', ['1 done cf set-env a B -x']],
    ['cf apps --nope -h', ['1 unknown cf apps --nope -h', '  unknown --nope']],
    ['cf push $APP $FLAGS "$A b"', ['1 done cf push $APP $FLAGS "$A b"']],
    ['cf $COMMAND a', ['1 unclear cf $COMMAND a', '  unclear $COMMAND']],
    ['cf bg-deploy x -f', ['1 refused cf bg-deploy x -f', '  refused bg-deploy']],
    ['cf v3-push x', ['1 refused cf v3-push x', '  refused v3-push']],
    ['cf v3-zdt-push x', ['1 refused cf v3-zdt-push x', '  refused v3-zdt-push']],
    ['cf app a b', ['1 unknown cf app a b', '  unknown b']],
    ['cf app $A b', ['1 done cf app $A b']],
    ['cf app "$A" b', ['1 unknown cf app $A b', '  unknown b']],
    ['cf push a -n host b', ['1 unknown cf push a -n host b', '  refused -n', '  unknown b']],
    ['cf push a --hostname "$HOST"', ['1 refused cf push a --hostname $HOST', '  refused --hostname']],
    ['cf no-such x', ['1 unknown cf no-such x', '  unknown no-such']],
    ['cf --version', ['1 done cf --version']],
    ['kf setup -f x', ['1 done cf setup -f x']],
  ])('%s is judged', (script, expected) => {
    expect(read(script)).toEqual(expected);
  });

  it.each([
    ['cf curl "/v3/apps?names=$A&space_guids=$S"', 'done'],
    ['cf curl v3/apps/$(cf app "$A" --guid)/env/', 'done'],
    ['cf curl "/v3/apps/${APP_GUID}/actions/restart" -X post', 'done'],
    ['cf curl -X PATCH "/v3/apps/$G" -d "{}"', 'done'],
    ['cf curl /api/v1/namespaces/x/pods', 'done'],
    ['cf curl "$next"', 'unclear', 'the path of the request is known only when the script runs'],
    ['cf curl -X "$M" /v3/apps', 'unclear', 'the method of the request is known only when the script runs'],
    ['cf curl "/v3/$KIND/$G"', 'unclear', 'the path of the request is known only when the script runs'],
    ['cf curl /v3/apps -d @app.json', 'refused', 'kf create-app APP_NAME'],
    ['cf curl -X DELETE /v3/apps/$G/routes', 'refused', 'docs/curl.md lists the requests that kf answers'],
    ['cf curl /v2/apps', 'refused', 'kf curl /v3: the API has no version 2 any more'],
    ['cf curl "/api/v1/read/$G"', 'refused', 'kf logs APP_NAME --recent'],
    ['cf curl https://api.example.com/v3/apps', 'refused', 'the path without the server: kf curl /v3/...'],
  ])('%s is %s', (script, status, text?: string) => {
    expect(callsOf(script).map((call) => [call.status, call.remarks[0]?.text])[0]).toEqual([status, text]);
  });

  it.each([
    ['cf run-task $APP "rake db:migrate" --name m', 'unclear', 'rake db:migrate', 'kf run-task APP_NAME --command COMMAND'],
    ['cf check-route $HOST $DOMAIN', 'unclear', '$DOMAIN', 'kf check-route DOMAIN -n HOST'],
    ['cf create-route $SPACE $DOMAIN -n $HOST', 'unclear', '$DOMAIN', 'kf create-route DOMAIN -n HOST'],
    ['cf run-task $APP --command "$COMMAND"', 'done'],
    ['cf create-route $DOMAIN -n $HOST', 'done'],
  ])('of a form of older versions with variables, %s, is %s', (script, status, about?: string, instead?: string) => {
    const [call] = callsOf(script);
    expect([call?.status, call?.remarks[0]?.about]).toEqual([status, about]);
    if (instead !== undefined) expect(call?.remarks[0]?.text).toContain(`instead: ${instead}`);
  });

  it('breaks a script when it is refused or unknown', () => {
    const all = ['done', 'ignored', 'differs', 'unclear', 'refused', 'unknown'] as const;
    expect(all.filter(breaks)).toEqual(['refused', 'unknown']);
  });

  it('has the line of its first word', () => {
    expect(read('x &&', '  cf push a \\', '  -i 1', 'y=`', 'cf apps`')).toEqual(['2 done cf push a -i 1', '5 done cf apps']);
  });
});
