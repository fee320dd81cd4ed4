// Written by tools/generate.ts from tools/surface.

export type Note = readonly [status: string, text: string];

/** What a call of a command can have. */
export type CallFacts = readonly [
  /** `short,long`, with `=` for a value. */
  flags: string,
  /** null: any number. */
  mostArgs: number | null,
  /** What to know of the command (under an empty name), of a flag or of a value of a flag. */
  notes?: Readonly<Record<string, Note>>,
  /** Text that looks like an unknown flag is data. */
  dashesAreData?: boolean,
];

export const surface: Readonly<Record<string, CallFacts>> = {
  "help": ["a,all",1],
  "version": ["",0],
  "login": ["a,api= u,user= p,password= o,org= s,space= skip-ssl-validation sso sso-passcode= origin=",0,{"":["differs","cluster and user are those of the kubeconfig, and the password is not used"],"--password":["ignored","the kubeconfig holds the credentials"],"--user":["differs","a user of the kubeconfig"]}],
  "logout": ["",0,{"":["differs","the credentials stay in the kubeconfig"]}],
  "target": ["o,org= s,space=",0],
  "api": ["unset skip-ssl-validation",1],
  "auth": ["client-credentials origin= assertion=",2,{"":["differs","the user is one of the kubeconfig, and the password is not used"]}],
  "apps": ["no-stats labels=",0],
  "app": ["guid",1],
  "push": ["b,buildpack= c,start-command= f,manifest= no-manifest var= vars-file= p,path= redact-env o,docker-image= s,stack= i,instances= m,memory= k,disk= t,app-start-timeout= u,health-check-type= endpoint= no-route random-route no-start no-wait strategy= force docker-username= droplet= instance-steps= lifecycle= l,log-rate-limit= max-in-flight= task",1,{"--buildpack":["differs","the names are those of the builder's Cloud Native Buildpacks; a URL is refused"],"--stack":["differs","the stacks are those of the builder; one of Cloud Foundry (cflinuxfs4) causes a warning"],"--strategy=canary":["refused","--strategy rolling"]}],
  "scale": ["i,instances= k,disk= m,memory= process= f,force l=",1],
  "delete": ["f,force r,routes",1],
  "start": ["",1],
  "stop": ["",1],
  "restart": ["strategy= no-wait instance-steps= max-in-flight=",1,{"--strategy=canary":["refused","--strategy rolling"]}],
  "restage": ["strategy= no-wait instance-steps= max-in-flight=",1,{"--strategy=canary":["refused","--strategy rolling"]}],
  "run-task": ["c,command= k,disk= m,memory= name= process= w,wait l=",1],
  "task": ["",2],
  "tasks": ["",1],
  "terminate-task": ["",2],
  "logs": ["recent",1],
  "env": ["",1],
  "set-env": ["",3,{},true],
  "unset-env": ["",2],
  "services": ["no-apps",0],
  "delete-service": ["f,force w,wait",1,{"--wait":["ignored","a user-provided service is gone at once"]}],
  "bind-service": ["binding-name= w,wait c= strategy=",2,{"--wait":["ignored","a binding of a user-provided service is always waited for"]}],
  "unbind-service": ["w,wait guid=",2,{"--wait":["ignored","a binding of a user-provided service is gone at once"]}],
  "create-user-provided-service": ["p,credentials= l,syslog-drain= r,route-service= t,tags=",1,{"--syslog-drain":["ignored","the URL is kept, but logs are not sent to it yet"],"--route-service":["ignored","the URL is kept, but no request goes through it yet"]}],
  "orgs": ["labels=",0],
  "org": ["guid",1],
  "create-org": ["q,quota=",1],
  "delete-org": ["f,force",1],
  "rename-org": ["",2],
  "spaces": ["labels=",0],
  "space": ["guid security-group-rules",1],
  "create-space": ["o,org= q,quota=",1],
  "delete-space": ["f,force o,org=",1],
  "rename-space": ["",2],
  "domains": ["labels=",0],
  "create-shared-domain": ["router-group= internal",1],
  "delete-shared-domain": ["f,force",1],
  "routes": ["org-level labels=",0],
  "route": ["n,hostname= path= port=",1],
  "create-route": ["n,hostname= path= port= o,option=",1],
  "check-route": ["n,hostname= path= port=",1],
  "map-route": ["n,hostname= path= app-port= app-protocol= port= o,option=",2,{"--app-protocol":["differs","http1 is the only protocol"],"--app-protocol=http2":["refused","an app that speaks HTTP/1.1"]}],
  "unmap-route": ["n,hostname= path= port=",2],
  "delete-route": ["f,force n,hostname= path= port=",1],
  "delete-orphaned-routes": ["f,force",0],
  "plugins": ["checksum outdated",0],
  "install-plugin": ["f,force r=",1,{"":["differs","plugins are npm packages made for kf; those of cf do not run"]}],
  "uninstall-plugin": ["",1],
};
