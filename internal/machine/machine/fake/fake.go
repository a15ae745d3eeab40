// SPDX-License-Identifier: Apache-2.0

// Package fake has a [machine.Provider] for tests: it keeps everything in memory and fails when it is told to.
package fake

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/machine/machine"
)

// Config says which addresses and names the machines get.
type Config struct {
	Subnet machine.Subnet
	Region region.Region
	Now    func() time.Time
}

// Name is the provider's in the suite of all providers. Its machines can do nothing, as those of an unknown provider.
const Name v1alpha1.Provider = "fake"

// Method is one of the provider's.
type Method string

// The methods that can be told to fail.
const (
	Launch    Method = "Launch"
	Stop      Method = "Stop"
	Get       Method = "Get"
	List      Method = "List"
	Terminate Method = "Terminate"
)

// Provider keeps machines in memory.
type Provider struct {
	config Config

	mutex     sync.Mutex
	instances map[string]machine.Instance
	userData  map[string][]byte
	failures  map[Method][]error
	calls     map[Method]int
}

var _ machine.Provider = (*Provider)(nil)

// New makes a provider without machines.
func New(config Config) *Provider {
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Provider{
		config: config, instances: map[string]machine.Instance{}, userData: map[string][]byte{},
		failures: map[Method][]error{}, calls: map[Method]int{},
	}
}

// Fail makes the next call of a method return an error, and do nothing. Several errors are for as many calls.
func (p *Provider) Fail(method Method, errs ...error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.failures[method] = append(p.failures[method], errs...)
}

// Die makes a machine stop by itself, as one whose process has been killed.
func (p *Provider) Die(id string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.halt(id)
}

func (p *Provider) halt(id string) {
	if instance, ok := p.instances[id]; ok {
		instance.State = machine.Stopped
		p.instances[id] = instance
	}
}

// UserData is what a machine was told last.
func (p *Provider) UserData(id string) []byte {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Clone(p.userData[id])
}

// Calls counts the calls of a method, those that failed too.
func (p *Provider) Calls(method Method) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.calls[method]
}

// enter counts a call and takes the error that it is to return.
func (p *Provider) enter(ctx context.Context, method Method) error {
	p.calls[method]++
	if err := ctx.Err(); err != nil {
		return err
	}
	if errs := p.failures[method]; len(errs) > 0 {
		p.failures[method] = errs[1:]
		return errs[0]
	}
	return nil
}

// Launch implements [machine.Provider].
func (p *Provider) Launch(ctx context.Context, request machine.LaunchRequest) (machine.Instance, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err := p.enter(ctx, Launch); err != nil {
		return machine.Instance{}, err
	}
	if err := request.Validate(); err != nil {
		return machine.Instance{}, err
	}
	if request.Pods > 0 {
		return machine.Instance{}, machine.CannotError{Provider: Name, Do: v1alpha1.RunPods}
	}
	instance, ok := p.instances[request.ID]
	if !ok {
		var used []netip.Prefix
		for _, address := range p.config.Subnet.Taken {
			used = append(used, netip.PrefixFrom(address, 32))
		}
		for _, other := range p.instances {
			used = append(used, netip.PrefixFrom(other.PrivateIP, 32))
		}
		address, _, err := machine.Allocate(p.config.Subnet.CIDR, used, 0)
		if err != nil {
			return machine.Instance{}, err
		}
		instance = machine.Instance{
			ID: request.ID, PrivateIP: address, PrivateDNSName: request.NamePrefix + machine.PrivateDNSName(address, p.config.Region.Domain()),
			Zone: p.config.Subnet.Zone, LaunchTime: p.config.Now(),
		}
	}
	instance.State = machine.Running
	p.instances[request.ID] = instance
	p.userData[request.ID] = slices.Clone(request.UserData)
	return instance, nil
}

// Get implements [machine.Provider].
func (p *Provider) Get(ctx context.Context, id string) (machine.Instance, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err := p.enter(ctx, Get); err != nil {
		return machine.Instance{}, err
	}
	instance, ok := p.instances[id]
	if !ok {
		return machine.Instance{}, fmt.Errorf("%w: %s", machine.ErrNotFound, id)
	}
	return instance, nil
}

// List implements [machine.Provider].
func (p *Provider) List(ctx context.Context) ([]machine.Instance, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err := p.enter(ctx, List); err != nil {
		return nil, err
	}
	instances := make([]machine.Instance, 0, len(p.instances))
	for _, id := range slices.Sorted(maps.Keys(p.instances)) {
		instances = append(instances, p.instances[id])
	}
	return instances, nil
}

// Stop implements [machine.Provider].
func (p *Provider) Stop(ctx context.Context, id string) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err := p.enter(ctx, Stop); err != nil {
		return err
	}
	p.halt(id)
	return nil
}

// Terminate implements [machine.Provider].
func (p *Provider) Terminate(ctx context.Context, id string) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err := p.enter(ctx, Terminate); err != nil {
		return err
	}
	delete(p.instances, id)
	delete(p.userData, id)
	return nil
}
