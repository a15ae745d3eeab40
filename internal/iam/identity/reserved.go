// SPDX-License-Identifier: Apache-2.0

package identity

import "strings"

// The names that mean something to Kubernetes itself.
const (
	systemPrefix = "system:"
	nodePrefix   = "system:node:"
	groupNodes   = "system:nodes"
	// groupBootstrappers may ask for a node's certificate. Groups that begin with it and a colon are those of bootstrap
	// tokens.
	groupBootstrappers = "system:bootstrappers"
)

// DefaultReserved are the prefixes that no user name of a source may have. EKS reserves system: too in access entries;
// in aws-auth it has always been allowed, and nodes need it there.
func DefaultReserved(s Source) []string {
	others := []string{"eks:", "aws:", "amazon:", "iam:"}
	if s == SourceAccessEntry {
		return append([]string{systemPrefix}, others...)
	}
	return others
}

func hasAny(s string, prefixes []string) (string, bool) {
	for _, prefix := range prefixes {
		if strings.HasPrefix(s, prefix) {
			return prefix, true
		}
	}
	return "", false
}
