// The pod and container settings that PodSecurity "restricted" requires.

/** A container whose pod sets the user. */
export const unprivilegedContainer = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' as const },
};

export const nonRootContainer = { ...unprivilegedContainer, runAsNonRoot: true };

/** The containers of kf itself: they write only to their volumes. */
export const restrictedContainer = { ...nonRootContainer, readOnlyRootFilesystem: true };

/**
 * User and group of kf's own pods. The kernel counts inotify instances, epoll watches and processes per user ID over all pods of a node: with the
 * user of an app, the app could leave none for them (decision 102). No distribution uses the numbers 60578 to 61183.
 */
export const ownUserId = 60901;

const podOf = (id: number) => ({
  runAsNonRoot: true,
  runAsUser: id,
  runAsGroup: id,
  fsGroup: id,
  seccompProfile: { type: 'RuntimeDefault' },
});

export const restrictedPod = podOf(ownUserId);

/** The files in the registry's volume of an existing installation belong to this user, and not every kind of volume changes the owner. */
const registryUserId = 1000;

export const registryPod = podOf(registryUserId);
