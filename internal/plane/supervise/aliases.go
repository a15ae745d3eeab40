// SPDX-License-Identifier: Apache-2.0

package supervise

import "muster.dev/muster/internal/plane/runner"

// The words of package runner, until package serve says them itself.
type (
	State     = runner.State
	Status    = runner.Status
	Memory    = runner.Memory
	MemoryEnd = runner.MemoryEnd
)

// Ready is [runner.Ready].
const Ready = runner.Ready

// Starting and Unready are [runner.Starting] and [runner.Unready].
const (
	Starting = runner.Starting
	Unready  = runner.Unready
)

// Summary is [runner.Summary].
var Summary = runner.Summary
