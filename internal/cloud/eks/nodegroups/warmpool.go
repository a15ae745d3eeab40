// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"strconv"
	"strings"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
)

// warmPoolConfig is the warm pool of a node group.
type warmPoolConfig struct {
	Enabled                           *bool
	MinSize, MaxGroupPreparedCapacity *int32
	PoolState                         string
	ReuseOnScaleIn                    *bool
}

// poolStates are the states of a warm pool. EKS's API writes them in capitals, and its user guide as EC2 does, so either is
// taken.
var poolStates = []v1alpha1.WarmPoolState{v1alpha1.WarmStopped, v1alpha1.WarmRunning, v1alpha1.WarmHibernated}

// from is the warm pool of a node group after a request; nil for none. Fields that the request leaves out stay as they were. A
// maximum of -1 takes an earlier one away, as in EC2 Auto Scaling.
func (w *warmPoolConfig) from(was *v1alpha1.WarmPool, refuse eksfault.Refuse) (*v1alpha1.WarmPool, error) {
	if w == nil {
		return was, nil
	}
	enabled := was != nil
	if w.Enabled != nil {
		enabled = *w.Enabled
	}
	if !enabled {
		if w.MinSize != nil || w.MaxGroupPreparedCapacity != nil || w.PoolState != "" || w.ReuseOnScaleIn != nil {
			return nil, refuse("warmPoolConfig has settings of a warm pool that is not enabled: set enabled to true, or leave the others out")
		}
		return nil, nil
	}
	pool := was.DeepCopy()
	if pool == nil {
		pool = &v1alpha1.WarmPool{}
	}
	if w.MinSize != nil {
		pool.MinSize = *w.MinSize
	}
	if most := w.MaxGroupPreparedCapacity; most != nil {
		if pool.MaxGroupPreparedCapacity = most; *most == -1 {
			pool.MaxGroupPreparedCapacity = nil
		}
	}
	if w.PoolState != "" {
		pool.PoolState = v1alpha1.WarmPoolState(w.PoolState) // an unknown one is refused with the rest of the spec
		for _, state := range poolStates {
			if strings.EqualFold(string(state), w.PoolState) {
				pool.PoolState = state
			}
		}
	}
	if w.ReuseOnScaleIn != nil {
		pool.ReuseOnScaleIn = *w.ReuseOnScaleIn
	}
	return pool, nil
}

// warmPool is the warm pool of a new node group; nil for none.
func (in *createNodegroupInput) warmPool() (*v1alpha1.WarmPool, error) {
	refuse := eksfault.Invalid(in.ClusterName, in.NodegroupName)
	pool, err := in.WarmPoolConfig.from(nil, refuse)
	if err == nil && pool != nil && len(in.InstanceTypes) > 1 {
		err = refuse("A node group with %d instanceTypes has no warm pool, as EC2 Auto Scaling has none for mixed instances: give one type", len(in.InstanceTypes))
	}
	return pool, err
}

// plan plans the new warm pool of a node group, with the parameters as EKS tells of them.
func (w *warmPoolConfig) plan(p *change.Plan, refuse eksfault.Refuse) error {
	if w == nil {
		return nil
	}
	pool, err := w.from(p.Group.Spec.WarmPool, refuse)
	if err != nil {
		return err
	}
	p.Change.WarmPool = &v1alpha1.UpdateWarmPool{Pool: pool}
	for _, flag := range []struct {
		kind string
		is   *bool
	}{{"WarmPoolEnabled", w.Enabled}, {"WarmPoolReuseOnScaleIn", w.ReuseOnScaleIn}} {
		if flag.is != nil {
			p.Param(flag.kind, strconv.FormatBool(*flag.is))
		}
	}
	for _, size := range []struct {
		kind string
		is   *int32
	}{{"WarmPoolMaxGroupPreparedCapacity", w.MaxGroupPreparedCapacity}, {"WarmPoolMinSize", w.MinSize}} {
		if size.is != nil {
			p.Param(size.kind, strconv.Itoa(int(*size.is)))
		}
	}
	if w.PoolState != "" {
		p.Param("WarmPoolState", w.PoolState)
	}
	return nil
}

// showWarmPool is a warm pool as EKS tells of it; nil for none, as Terraform has it.
func showWarmPool(pool *v1alpha1.WarmPool) *warmPoolConfig {
	if pool == nil {
		return nil
	}
	return &warmPoolConfig{
		Enabled: new(true), MinSize: &pool.MinSize, MaxGroupPreparedCapacity: pool.MaxGroupPreparedCapacity,
		PoolState: strings.ToUpper(string(pool.State())), ReuseOnScaleIn: &pool.ReuseOnScaleIn,
	}
}
