// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"

	v1alpha1 "muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/policy"
)

const machinesSource = "machines of the management plane"

// InventoryConfig says where Machines are read.
type InventoryConfig struct {
	// Source lists and watches Machines: see Machines.
	Source cache.ListerWatcher
	// ClusterName limits the inventory to the machines of one cluster. Empty means all.
	ClusterName string
	// StaleAfter is how long the watch may be broken before answers become Unknown; 30 s if 0.
	StaleAfter time.Duration
	Now        func() time.Time // time.Now if nil
	Logger     *slog.Logger
}

// Inventory knows the machines, by a watch. Lookups cost no request.
type Inventory struct {
	config   InventoryConfig
	informer cache.SharedIndexInformer
	health   *health
}

// Change tells what a change in the inventory may have changed the answer about.
type Change struct {
	// All means everything: the inventory was out of date and is not any more.
	All bool
	// Machines by ID, and Nodes, Names and addresses, before and after.
	Machines, Nodes, Names []string
}

const (
	byNode = "node"
	byName = "name"
)

// NewInventory makes one. onChange is called, one call at a time, after each change; it must be quick.
func NewInventory(c InventoryConfig, onChange func(Change)) (*Inventory, error) {
	switch {
	case c.Source == nil:
		return nil, errors.New("an inventory needs a source of machines")
	case c.Logger == nil:
		return nil, errors.New("an inventory needs a logger")
	}
	if c.StaleAfter <= 0 {
		c.StaleAfter = 30 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	i := &Inventory{config: c}
	i.health = &health{now: c.Now, staleAfter: c.StaleAfter, logger: c.Logger, recovered: func() { onChange(Change{All: true}) }}
	i.informer = cache.NewSharedIndexInformer(watched{c.Source, i.health}, &v1alpha1.Machine{}, 0, cache.Indexers{
		byNode: i.index(func(m policy.Machine) []string { return []string{m.NodeName} }),
		byName: i.index(namesOf),
	})
	if err := i.informer.SetTransform(trim); err != nil {
		return nil, fmt.Errorf("preparing the inventory: %w", err)
	}
	// Requests that fail are logged where their health is watched, once for each outage.
	quiet := func(_ context.Context, _ *cache.Reflector, err error) {
		c.Logger.Debug("inventory watch ended", "error", err)
	}
	if err := i.informer.SetWatchErrorHandlerWithContext(quiet); err != nil {
		return nil, fmt.Errorf("preparing the inventory: %w", err)
	}
	if _, err := i.informer.AddEventHandler(i.handler(onChange)); err != nil {
		return nil, fmt.Errorf("preparing the inventory: %w", err)
	}
	return i, nil
}

// Run watches until ctx is done.
func (i *Inventory) Run(ctx context.Context) { i.informer.RunWithContext(ctx) }

// HasSynced tells whether all machines have been read once.
func (i *Inventory) HasSynced() bool { return i.informer.HasSynced() }

// Machine finds a machine by its ID.
func (i *Inventory) Machine(id string) policy.Fact[policy.Machine] {
	at, why := i.current()
	if why != "" {
		return policy.DontKnow[policy.Machine](machinesSource, why)
	}
	o, ok, err := i.informer.GetIndexer().GetByKey(id)
	if err != nil {
		return policy.DontKnow[policy.Machine](machinesSource, err.Error())
	}
	m, mine := o.(*v1alpha1.Machine)
	if !ok || !mine || !i.mine(m) {
		return policy.None[policy.Machine](machinesSource, at)
	}
	return policy.Know(machineOf(m), machinesSource, at)
}

// MachineOfNode finds the machine that may register a node. If two claim to be it, which may happen for a moment when an
// address is used again, the answer is Unknown until one of them is gone.
func (i *Inventory) MachineOfNode(node string) policy.Fact[policy.Machine] {
	found, at, why := i.find(byNode, node)
	switch {
	case why != "":
		return policy.DontKnow[policy.Machine](machinesSource, why)
	case len(found) == 0:
		return policy.None[policy.Machine](machinesSource, at)
	case len(found) > 1:
		return policy.DontKnow[policy.Machine](machinesSource, fmt.Sprintf("machines %s and %s both have this node name", found[0].ID, found[1].ID))
	}
	return policy.Know(found[0], machinesSource, at)
}

// Owners finds the IDs of all machines that have a DNS name or an address.
func (i *Inventory) Owners(name string) policy.Fact[[]string] {
	found, at, why := i.find(byName, name)
	if why != "" {
		return policy.DontKnow[[]string](machinesSource, why)
	}
	var ids []string
	for _, m := range found {
		ids = append(ids, m.ID)
	}
	return policy.Know(ids, machinesSource, at)
}

func (i *Inventory) find(index, key string) (found []policy.Machine, at time.Time, why string) {
	if at, why = i.current(); why != "" {
		return nil, at, why
	}
	objects, err := i.informer.GetIndexer().ByIndex(index, key)
	if err != nil {
		return nil, at, err.Error()
	}
	for _, o := range objects {
		if m, ok := o.(*v1alpha1.Machine); ok {
			found = append(found, machineOf(m))
		}
	}
	slices.SortFunc(found, func(a, b policy.Machine) int { return strings.Compare(a.ID, b.ID) })
	return found, at, ""
}

// current returns the time that answers are true for, or why there are none.
func (i *Inventory) current() (at time.Time, why string) {
	if !i.informer.HasSynced() {
		return time.Time{}, "the machines have not been read yet"
	}
	at, stale := i.health.since()
	if stale {
		return at, fmt.Sprintf("the management plane has not answered since %s", at.UTC().Format(time.RFC3339))
	}
	return at, ""
}

func (i *Inventory) mine(m *v1alpha1.Machine) bool {
	return i.config.ClusterName == "" || m.Spec.ClusterName == i.config.ClusterName
}
