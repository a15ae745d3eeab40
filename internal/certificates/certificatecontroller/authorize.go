// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"context"

	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/nodeauthorizer"
)

// authorize opens the port at which an API server asks about requests of nodes, if the policy file has one.
func (a *assembled) authorize(ctx context.Context, records *issued.Register) error {
	at := a.config.Policy.Authorization
	if at.BindAddress == "" {
		return nil
	}
	authorizer, err := nodeauthorizer.New(nodeauthorizer.Config{Certificates: records, Machines: a.machines, Metrics: a.registry, Logger: a.config.Logger})
	if err != nil {
		return err
	}
	a.authorizer, err = nodeauthorizer.Listen(ctx, nodeauthorizer.ServerConfig{
		Address: at.BindAddress, Certificate: at.Certificate, Key: at.Key, ClientCA: at.ClientCA, Handler: authorizer, Logger: a.config.Logger,
	})
	return err
}
