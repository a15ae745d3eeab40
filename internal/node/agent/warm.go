// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/node/imds"
)

const (
	// lifecycleLeaf is where EC2 tells an instance of an Auto Scaling group which state it is to get to (Auto Scaling's user
	// guide, "Retrieve the target lifecycle state through instance metadata").
	lifecycleLeaf = "autoscaling/target-lifecycle-state"
	// warmPrefix begins the states of a warm pool.
	warmPrefix = "Warmed:"
	// warmInterval is how often a machine of a warm pool asks whether it is in service.
	warmInterval = 100 * time.Millisecond
)

// entersService waits while the machine is to stay in the warm pool of its node group: it has done everything by now that
// comes before its kubelet, and prepare does what else can be done ahead, before it says so. Its news may be old when it goes
// on, so it asks again. It reports false when the context has ended.
func entersService(ctx context.Context, a *agent, prepare func()) bool {
	waited, said := false, ""
	if !poll(ctx, warmInterval, func() bool {
		state, err := a.metadata.Metadata(ctx, lifecycleLeaf)
		switch {
		case errors.Is(err, imds.ErrNotFound), err == nil && !strings.HasPrefix(state, warmPrefix):
			return true
		case err != nil && err.Error() != said:
			said = err.Error()
			a.log.Warn("the instance metadata service does not say whether this machine is in service; asking again", "error", err)
		case err == nil && !waited:
			waited = true
			prepare()
			a.log.Info("machine waits in the warm pool of its node group", "state", state)
			a.report(bootreport.Warmed, "the machine has booted, and waits in the warm pool of its node group: "+state)
		}
		return false
	}) {
		return false
	}
	if !waited {
		return true
	}
	a.log.Info("machine enters service")
	a.over(bootreport.Warmed)
	now, err := a.ask(ctx)
	if err == nil {
		a.setHeard(now)
		err = a.become(ctx, now)
	}
	if err != nil { // and watch asks again
		a.log.Error("what the machine is told cannot be used; it goes on with what it was told before", "error", err)
	}
	return ctx.Err() == nil
}
