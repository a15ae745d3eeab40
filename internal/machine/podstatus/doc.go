// SPDX-License-Identifier: Apache-2.0

// Package podstatus decides what a kubelet would report about pods, for nodes whose pods have no process.
//
// [Next] is a function of a node, the pods that are bound to it and the time. Nothing is kept beside that: earlier
// reports are in the pods, so a process that was killed is followed by one that goes on.
//
//	bound ──► fits? ──no──► Failed, OutOfcpu and the like (pkg/kubelet/lifecycle/predicate.go)
//	            └─yes─► has an address? ──no──► Pending, ContainerCreating
//	                        └─yes─► Running; Ready, if the readiness gates are true
//	                                   ├─ its run time is over (RunTimeAnnotation) ──► Succeeded
//	                                   ├─ activeDeadlineSeconds are over ──► Failed, DeadlineExceeded
//	                                   └─ deleted or evicted ──► Terminating until the grace period is over ──► Failed ──► gone
//
// The fields are those of a kubelet of Kubernetes 1.36 (pkg/kubelet/kubelet_pods.go, generateAPIPodStatus), without the
// id of the image and the user of the container, which only a runtime knows.
//
// The package assumes that images are there, volumes are mounted, containers start at once, in the order of the pod, and
// never fail, that probes succeed, and that containers ignore SIGTERM, so that a pod takes the whole of its grace
// period. Containers end by themselves only if an annotation of the pod says so, those of Jobs too.
package podstatus
