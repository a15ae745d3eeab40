// SPDX-License-Identifier: Apache-2.0

// Package privatedns is the name server of a VPC: it answers for the private DNS names of machines, as Amazon's
// resolver at the second address of a VPC does.
//
//	ip-192-168-64-11.ec2.internal  A    192.168.64.11
//	i-0123456789abcdef0.ec2.internal    A    192.168.64.11
//	11.64.168.192.in-addr.arpa        PTR  ip-192-168-64-11.ec2.internal
//	eks.us-east-1.amazonaws.com         A    192.168.0.3, as every name of a service that the account answers
//	k8s-shop-web-….elb.us-east-1.amazonaws.com   A    192.168.0.12, as every load balancer
//	any other name                    what the host's name servers say; NXDOMAIN where the VPC has no way out
//
// Nobody outside is asked about names of one label, of machines, of clusters, and of addresses of private networks. A
// query outside is a new query with the client's question, and answers are cut to the size that the client takes. The
// number of queries under way is bounded, in all and for each machine with its pods.
//
// Machines ask it by /etc/resolv.conf, and so does the cluster's DNS for names that are not the cluster's.
//
// It trusts the records of machines, which were on disk before the machines booted, and the host's name servers about
// names that are not in them. It refuses to believe a machine about its name, updates, zone transfers, and every class
// but IN.
package privatedns
