// SPDX-License-Identifier: Apache-2.0

// Package fargatecontroller is the fargate-scheduler of one cluster, and the controller of its FargateProfiles.
//
//	FargateProfile   pod execution role → instance profile and access entry; admission policies of the cluster → Ready
//	Pod              package fargate decides; a machine is made for the pod, and the pod is bound to it when it is Ready
//	Machine          is deleted when its pod is gone
//
// It is a controller and not a second profile of kube-scheduler: there is nothing to choose among Nodes, since the one
// Node of a pod is made for it, and a profile of kube-scheduler would wait for a Node that nobody makes.
//
// What happens if
//
//	it is killed while it makes a machine     the id follows from the pod's UID: the machine is made once
//	it is killed before it deletes a machine  each machine is looked at when it starts, and one without its pod is deleted
//	the pod's last lines are not sent yet     a machine with a log router stays for 10 s after its pod
//	it does not run                           pods of Fargate wait, and those that run go on; no other pod notices
//	the admission policies fail               a pod goes to kube-scheduler, as without a profile
//	the machine of a pod is lost              package nodegroup deletes the pods on it, as of every machine; a pod that was not bound gets another
//	the kubelet refuses a pod                 its machine goes, and the pod with it; others of its controller wait, from 10 s up to 5 min
//	a policy of the cluster denies a binding  the pod says so, and it is tried again every few seconds; its machine stays meanwhile
//	the host has no room                      the pod says so, and is looked at again every few seconds
//
// It trusts the management plane. Of a cluster it believes what pods say about themselves: their requests decide what
// their machines have, and their labels and namespace which profile they are of.
package fargatecontroller
