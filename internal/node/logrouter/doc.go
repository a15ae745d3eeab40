// SPDX-License-Identifier: Apache-2.0

// Package logrouter is the log router of a machine of Fargate: it brings the logs of the machine's containers to CloudWatch Logs, as
// package fluentbit's configuration says. On EKS that is Fluent Bit.
//
//	/var/log/containers/*.log ──> records ──> filters ──> PutLogEvents, with the pod execution role ──> how far it came, on the disk
//
// The role's policies decide whether a log group and a log stream may be made, and events be put: the router has no other right.
//
// What happens if
//
//	the agent is killed             it goes on where the record says, which is written once an answer has come; CloudWatch Logs answers
//	                                when events are on the disk. If it is killed between the two, these events come twice, as with Fluent Bit
//	an answer does not come         the same events are sent again, and are there once
//	the role may not                nothing is lost while the kubelet keeps the file; it is logged once, and tried again
//	an event cannot be taken        what CloudWatch Logs refuses for good is dropped, and that is logged
//	a log is rotated                what is left of the older file is read first; lines of one that is compressed already are lost
//	a line has more than 66 KB      it is passed over, as EKS's router is configured to
//	the pod ends                    its files stay open, and are read to their end; the fargate-scheduler keeps the machine meanwhile
//	the machine shuts down          what is there is sent, if that takes no longer than a second
//	the service is away             files wait, and so do their lines
//
// It trusts the machine: all files and the role are the pod's own.
package logrouter
