// SPDX-License-Identifier: Apache-2.0

package logquery

import (
	"fmt"
	"strings"

	"muster.dev/muster/internal/platform/shellquote"
)

// NoStoreError is why a query has no answer where no log store listens.
type NoStoreError struct {
	// Cluster is the spec.name of the cluster whose logs were asked for.
	Cluster string
	// Kept says that logs were kept before, so that the log store was built and is not running.
	Kept bool
}

// Error says why there is no log store, and which command mends it.
func (e *NoStoreError) Error() string {
	if e.Kept {
		return "the log store does not run: muster status says whether the account runs, and what keeps logs from being kept; muster up starts it"
	}
	commands := e.Commands()
	return fmt.Sprintf("no logs are kept yet, so there is no log store: build it by `%s`, and switch log types on by %s", commands[0], commands[1])
}

// Commands are the command lines that mend it, in their order.
func (e *NoStoreError) Commands() []string {
	if e.Kept {
		return []string{"muster status", "muster up"}
	}
	return []string{"make logs", strings.Join([]string{
		"aws eks update-cluster-config --name", shellquote.Quote(e.Cluster), `--logging '{"clusterLogging":[{"types":["api","audit"],"enabled":true}]}'`,
	}, " ")}
}
