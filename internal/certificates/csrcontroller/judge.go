// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

// judgement is a verdict on a request, with the request and the facts about its subject.
type judgement struct {
	decision.Decision
	request policy.Request
	node    string            // that the request is about, "" if none
	own     bool              // the requester's token was made for the machine that is the node
	machine policy.MachineRef // that a certificate goes to, "" if nobody knows
}

// judge gathers the facts that the policy asks for and decides. The caller must call release when it has acted on it:
// until then nobody else is given a certificate for the same key.
func (c *Controller) judge(ctx context.Context, i item, r policy.Request) (d judgement, release func()) {
	q := policy.Ask(c.config.Policy, r)
	c.ledger.dependsOn(i, q)
	var f policy.Facts
	release = func() {}
	if q.Key != (pki.Fingerprint{}) {
		if c.claims.take(q.Key, r.CSR.CommonName(), i) {
			release = func() {
				for _, waiting := range c.claims.release(q.Key) {
					c.queue.add(waiting)
				}
			}
			f.KeyOwner = c.config.Register.KeyOwner(q.Key)
		} else {
			f.KeyOwner = contended()
		}
	}
	if q.Node != "" {
		f.Node = c.config.Nodes.Exists(q.Node)
		f.LastMachine = c.config.Register.LastMachine(q.Node)
		f.Expired = c.config.Register.Expired(q.Node)
	}
	if q.Credential != (pki.Fingerprint{}) {
		f.Credential = c.config.Register.Credential(q.Node, q.Credential)
	}
	if q.Token != "" {
		f.TokenSpent = c.config.Register.TokenSpent(q.Node, q.Token, q.Key)
	}
	if len(q.Nodes) > 0 {
		f.Nodes = make(map[string]policy.Fact[bool], len(q.Nodes))
	}
	for _, n := range q.Nodes {
		f.Nodes[n] = c.config.Nodes.Exists(n)
	}
	if q.Asker != "" {
		f.Elsewhere = c.config.Inventory.Elsewhere(q.Asker)
	}
	c.askInventory(&f, r, q)
	if len(q.Serving) > 0 && c.config.Serving != nil && f.NodeMachine.State == policy.Absent {
		f.Serving = c.config.Serving.Ask(q.Node, q.Serving)
	}
	m := f.TokenMachine
	own := m.State == policy.Known && m.Value.ID == q.Machine && m.Value.NodeName == q.Node
	return judgement{c.decide(ctx, r, f, q.Access), r, q.Node, own, policy.GoesTo(c.config.Policy, r, f)}, release
}

// askInventory asks about the names of a request, which may be any: each costs a source that looks them up, such as
// DNS, one of few places for as long as it takes. So it is asked only for a requester that is vouched for, and the
// holder of a machine's token may have that machine's names looked up and no others.
func (c *Controller) askInventory(f *policy.Facts, r policy.Request, q policy.Question) {
	f.Owners = make(map[string]policy.Fact[[]string], len(q.Names))
	why := ""
	switch {
	case !policy.Vouched(c.config.Policy, r):
		why = "not looked up: no rule vouches for the requester"
		f.TokenMachine = policy.DontKnow[policy.Machine](inventorySource, why)
	case q.Machine != "":
		f.TokenMachine = c.config.Inventory.Machine(q.Machine)
		if m := f.TokenMachine; m.State == policy.Known && m.Value.NodeName != q.Node || m.State != policy.Known && !m.Soon {
			why = "not looked up: the token is not known to be for this machine"
		}
	}
	if why != "" {
		f.NodeMachine = policy.DontKnow[policy.Machine](inventorySource, why)
		for _, n := range q.Names {
			f.Owners[n] = policy.DontKnow[[]string](inventorySource, why)
		}
		return
	}
	if q.Node != "" {
		f.NodeMachine = c.config.Inventory.MachineOfNode(q.Node)
	}
	for _, n := range q.Names {
		f.Owners[n] = c.config.Inventory.Owners(n)
	}
}

const inventorySource = "inventory"

// decide asks for the access review last. It costs a request, so it is asked for only if everything else is in order;
// then a yes changes nothing of what was decided without.
func (c *Controller) decide(ctx context.Context, r policy.Request, f policy.Facts, access *policy.Access) decision.Decision {
	if access != nil {
		const source = "SubjectAccessReview"
		f.Access = policy.Know(true, source, c.config.Now())
		d := policy.Decide(c.config.Policy, r, f, c.config.Now())
		if d.Verdict == decision.Approve {
			f.Access = c.config.Access.Review(ctx, *access)
			if f.Access.State == policy.Known && f.Access.Value {
				return d
			}
		} else {
			f.Access = policy.DontKnow[bool](source, "not looked up: other rules refuse or wait")
		}
	}
	return policy.Decide(c.config.Policy, r, f, c.config.Now())
}
