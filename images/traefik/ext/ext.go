// SPDX-License-Identifier: Apache-2.0

// Package ext stands in for a package that Traefik requires and that its module does not hold: two structures without
// fields, which Traefik inlines in its configuration.
package ext

// HTTP is inlined in the configuration of HTTP.
type HTTP struct{}

// Router is inlined in the configuration of a router.
type Router struct{}
