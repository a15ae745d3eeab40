// SPDX-License-Identifier: Apache-2.0

// Coredns is upstream's CoreDNS with only the plugins a cluster's own DNS needs: those that talk to clouds and other
// stores would make it four times as big. A Corefile that names another plugin is refused as "Unknown directive".
//
// The order in which plugins handle a query is fixed by upstream's dnsserver.Directives, not by these imports.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/metrics" // the directive "prometheus"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func main() {
	coremain.Run()
}
