// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/clusterconfig"
)

// envPlan in its environment has the test binary print the plan for the state directory that it is in, instead of
// testing.
const envPlan = "SESSION_TEST_PLAN"

func TestMain(m *testing.M) {
	if os.Getenv(envPlan) != "" {
		wanted := clusterconfig.Default(2, v1alpha1.ProviderSimulated)
		wanted.Cluster.Spec.APIServer.Port = 20999
		specs, err := Plan(".", "eu-west-1", wanted)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if err := json.NewEncoder(os.Stdout).Encode(specs); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
