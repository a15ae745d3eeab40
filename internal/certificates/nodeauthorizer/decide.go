// SPDX-License-Identifier: Apache-2.0

package nodeauthorizer

import (
	"fmt"

	"muster.dev/muster/internal/certificates/policy"
)

// result is what came of a request, as its metric says it.
type result string

const (
	noOpinion result = "no_opinion"
	gone      result = "machine_gone"
	unread    result = "not_read"
)

// verdict is a result, and for a request that is denied why.
type verdict struct {
	result result
	reason string
}

// denied reports whether the request is refused.
func (v verdict) denied() bool { return v.result != noOpinion }

// decide judges the certificate that a node made a request with. machine is what the source of its machine says, and is
// not asked for if ok is false: the record names no machine, or one of a source that does not count here.
func decide(node string, read bool, c policy.Fact[policy.Credential], machine policy.Fact[policy.Machine], ok bool) verdict {
	switch {
	case !read:
		return verdict{unread, fmt.Sprintf("machine-gone: the record of issued certificates has not been read yet, so nobody knows which machine got the certificate of %s; try again", node)}
	case c.State != policy.Known || !ok || machine.State == policy.Known:
		return verdict{result: noOpinion}
	}
	_, id := c.Value.Machine.Split()
	if machine.State == policy.Unknown {
		return verdict{unread, fmt.Sprintf("machine-gone: the certificate of %s was issued to machine %s, and %s: %s; try again", node, id, machine.Source, machine.Why)}
	}
	return verdict{gone, fmt.Sprintf("machine-gone: the certificate of %s was issued to machine %s, which is gone: let a machine that there is join by a bootstrap token or a role of its own", node, id)}
}
