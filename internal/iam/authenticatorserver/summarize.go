// SPDX-License-Identifier: Apache-2.0

package authenticatorserver

import (
	"fmt"
	"strings"

	"muster.dev/muster/internal/iam/authenticatorconfig"
)

// Summarize returns a configuration in one line: cluster, backend, mode and trusted session names.
func Summarize(c authenticatorconfig.Configuration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "cluster %s, backend %s, mode %s", c.ClusterID, c.Backend, c.Mapping.Mode)
	for _, t := range c.Mapping.TrustedSessionNames {
		fmt.Fprintf(&b, "; sessions of %s are trusted to be the nodes %s", t.Role, strings.Join(t.Names, ", "))
	}
	return b.String()
}
