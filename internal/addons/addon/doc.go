// SPDX-License-Identifier: Apache-2.0

// Package addon is the catalogue of EKS add-ons: their versions, the schemas of their configuration, and what a configuration makes of the objects
// that an add-on has in a cluster.
//
// What an add-on is here:
//
//	coredns                 a Deployment with what belongs to it, applied by the controller of add-ons
//	kube-proxy              a program of each machine, started by the machine's agent: the add-on reports
//	vpc-cni                 the network plugins ptp and portmap on each machine, with routes in the VPC: the add-on reports
//	metrics-server          a Deployment with what belongs to it and an API, applied by the controller of add-ons
//	snapshot-controller     a Deployment with what belongs to it, and the kinds of snapshots, of files that `make addons` makes
//	traefik                 a Deployment with what belongs to it, and the kinds of the Gateway API, of files that `make addons` makes
//	eks-pod-identity-agent  a server of each machine, in the machine's agent: the add-on reports
//
// Each has one version, that of the program in this release; the number behind eksbuild is that of Muster's objects for it. An Addon with
// the version of another release is not applied: it fails, and says which version there is.
package addon
