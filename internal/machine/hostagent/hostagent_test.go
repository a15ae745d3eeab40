// SPDX-License-Identifier: Apache-2.0

package hostagent_test

import (
	"testing"

	"muster.dev/muster/internal/machine/hostagent"
	"muster.dev/muster/internal/machine/hostagent/hostagenttest"
)

func TestInProcess(t *testing.T) {
	hostagenttest.Run(t, func(_ *testing.T, host hostagent.Host) hostagent.Host { return host })
}

func TestByMutualTLS(t *testing.T) {
	hostagenttest.Run(t, func(t *testing.T, host hostagent.Host) hostagent.Host {
		t.Helper()
		w := newWorld(t, host)
		return w.client(t, clientName)
	})
}
