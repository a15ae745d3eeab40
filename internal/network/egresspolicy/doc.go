// SPDX-License-Identifier: Apache-2.0

// Package egresspolicy decides which addresses outside a VPC its machines and pods may reach. It is asked about the
// address that is about to be dialled, after any name was resolved, so a name that answers with another address later
// opens nothing.
//
//	never          the host's own addresses, loopback, link-local, multicast and broadcast, metadata services of clouds, the VPC and its pods
//	unless listed  10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10
//	unless denied  every other IPv4 address
//
// The most specific range that contains an address decides about it. An allowed range opens a private range only if it
// is at least as specific as that range. If a range is both allowed and denied, it is denied. So `deniedRanges:
// [0.0.0.0/0]` with `allowedRanges: [203.0.113.0/24]` leaves that one range.
//
// It trusts what it is told of the host's addresses and of the VPC's own ranges. It refuses IPv6, but an IPv4 address
// in an IPv6 form is taken for what it is. The zero policy lets nothing out.
package egresspolicy
