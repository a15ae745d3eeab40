// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const nodeUserPrefix = "system:node:"

// nodeName is the node that the request is about, "" if there is none by that name.
func (r Request) nodeName() string {
	name, ok := strings.CutPrefix(r.CSR.CommonName(), nodeUserPrefix)
	if !ok || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ""
	}
	return name
}

// checkCommonName refuses what is not the user name of a node. Upstream also accepts an empty node name.
func checkCommonName(e evaluation) outcome {
	if !e.profile.Node {
		return notApplicable(notANode)
	}
	name := e.node
	if name == "" {
		return refuse("it must be "+nodeUserPrefix+"<name of a node>", "the common name is %q", e.request.CSR.CommonName())
	}
	return pass("node %s", name)
}
