// SPDX-License-Identifier: Apache-2.0

package vpccontroller

import (
	"context"
	"sync"

	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/socketdir"
)

// Supervisor runs the account's processes.
type Supervisor interface {
	// Add has a process run from now on.
	Add(spec component.Spec) error
	// Remove ends a process.
	Remove(ctx context.Context, spec component.Spec) error
}

// Supervised runs a process for each VPC, beside the account's others. It implements [Processes].
type Supervised struct {
	Account    component.Account
	Supervisor Supervisor
	// Certify issues the account's certificates anew, for the addresses that its services have in the VPCs that there
	// are.
	Certify func() error

	mutex     sync.Mutex
	certified map[string]bool // VPCs whose services' address the identity service's certificate is good for
}

// Start implements [Processes]. A VPC has a process for its way out if its description says that it has one.
func (p *Supervised) Start(ctx context.Context, id string) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.certified[id] { // STS and IAM have an address in each
		if err := p.Certify(); err != nil {
			return err
		}
		if p.certified == nil {
			p.certified = map[string]bool{}
		}
		p.certified[id] = true
	}
	if !p.Account.VPC {
		return nil
	}
	if err := p.Supervisor.Add(component.VPCSpec(p.Account, id)); err != nil {
		return err
	}
	description, err := vpc.Read(p.Account.State.VPCs(), id)
	if err != nil {
		return err
	}
	if !description.Egress.IsOpen() {
		return p.Supervisor.Remove(ctx, component.WayOutSpec(p.Account, id))
	}
	return p.Supervisor.Add(component.WayOutSpec(p.Account, id))
}

// Stop implements [Processes].
func (p *Supervised) Stop(ctx context.Context, id string) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.certified, id)
	if err := p.Supervisor.Remove(ctx, component.WayOutSpec(p.Account, id)); err != nil {
		return err
	}
	if err := p.Supervisor.Remove(ctx, component.BalancerSpec(p.Account, id)); err != nil {
		return err
	}
	if err := p.Supervisor.Remove(ctx, component.VPCSpec(p.Account, id)); err != nil {
		return err
	}
	return socketdir.Remove(p.Account.State.VPCSocket(id))
}
