// SPDX-License-Identifier: Apache-2.0

// Package updatecontroller is the controller of Updates: it makes the change that an Update asks for in its Cluster,
// NodeGroup or Addon, waits until the change has taken effect, and says how it ended.
//
//	in progress ──► (an older one of the same target? wait) ──► change the target ──► note when ──► wait for the effect ──► Successful
//	                                                               └─ refused, or the target is gone ────────────┴──► Failed
//
// The write that changes the target puts the name of the Update on it, [v1alpha1.AnnotationUpdate]. So the change is
// made once: a size that somebody sets afterwards is not set back. Status.steps has each step with its start and end.
//
// What happens if:
//
//	the service is killed before the change      the next one makes it
//	the service is killed after it               the annotation says that it is made; the next one waits for the effect
//	somebody else changes the target meanwhile   the write is refused by the API server and made again with what is there then
//	the API server refuses the change            Failed, OperationNotPermitted, with its words
//	the cluster runs on as it was, ChangeRefused Failed, OperationNotPermitted, with the reason
//	an upgrade or settings fail so               they are set back, once, in a write that says so, before the Update is Failed
//	the service is killed between the two        the cluster says which Update failed, and the next service writes it
//	they have had no effect after 20 minutes     Failed, ClusterUnreachable, and set back likewise
//	somebody changes the cluster meanwhile,      the Update waits, up to these 20 minutes, until that is mended: it is not the
//	and that is refused                          Update's fault
//	the target is deleted, or made again         Failed, OperationNotPermitted
//	a rollback of a cluster with its own Karpenter  its machines go back first; the cluster is changed once none is newer
//	they have not gone back in the time of rollbackConfig  Failed, PodEvictionFailure; the cluster was not changed, and they go forward again
//	a rollout is given up                        Failed, with the code of the rollout: PodEvictionFailure, NodeCreationFailure, …
//	it is, and rollbackOnFailure is true         the Update NAME-undo is made first, once, and waits for this one's end
//	it is cancelled                              Cancelled before the change; a rollout stops first; other changes take effect all the same
//	machines do not become Ready                 Failed, NodeCreationFailure, after 20 minutes; the size stays as it was asked for
//	an add-on fails, or stays unhealthy          Failed, with the code and the message of the add-on's issue
//	the API server of the cluster does not answer  Failed, ClusterUnreachable, after 20 minutes
//	a cluster has more than 100 updates          the oldest that have ended are deleted
//	the service is away while steps pass         these steps took no time; the update does not go back to an earlier step
package updatecontroller
