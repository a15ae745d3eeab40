// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"log/slog"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeclient"
)

// control sets the management plane up once it is ready, and then serves identities and the documents of issuers until
// the context ends. Whatever fails is tried again: an API server may go away at any moment.
func (s *Service) control(ctx context.Context, account component.Account) {
	scheme, err := planeclient.Scheme()
	if err != nil {
		s.cfg.Log.Error("setting up", "error", err)
		return
	}
	if err := retry(ctx, "setting up the management plane", s.say, func(ctx context.Context) error {
		return s.setUpManagement(ctx, scheme, account)
	}); err != nil {
		return
	}
	close(s.managed)
	var group sync.WaitGroup
	group.Go(func() { s.machines.Run(ctx) })
	group.Go(func() {
		moveToStored(ctx, s.cfg.Log, func() (client.WithWatch, error) { return s.managementClient(account, scheme) })
	})
	group.Go(func() { s.serveIssuers(ctx, account) })
	group.Go(func() {
		_ = retry(ctx, "running the account's controllers", s.say, func(ctx context.Context) error { return s.runAccountControllers(ctx, scheme, account) })
	})
	group.Go(func() { s.keepVPCs(ctx, scheme, account) })
	s.serveIdentity(ctx, scheme, account)
	group.Wait()
}

// setUpManagement teaches the management plane muster's kinds, and makes the objects that it always has.
func (s *Service) setUpManagement(ctx context.Context, scheme *runtime.Scheme, account component.Account) error {
	if err := planeclient.AwaitManagement(ctx, planeclient.Management(account, s.writes)); err != nil {
		return err
	}
	api, err := s.managementClient(account, scheme)
	if err != nil {
		return err
	}
	if err := baseline.SetUpManagement(ctx, api); err != nil {
		return err
	}
	s.machines, err = planeclient.NewShared(api)
	return err
}

// moveToStored moves the objects of muster's kinds to the versions that are stored now. The service does all else
// meanwhile, and what cannot be moved is tried again.
func moveToStored(ctx context.Context, log *slog.Logger, management func() (client.WithWatch, error)) {
	for {
		api, err := management()
		if err == nil {
			err = baseline.MoveManagementToStored(ctx, api)
		}
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			log.Error("objects of the management plane", "error", err)
		}
		if pause(ctx, renewalInterval) != nil {
			return
		}
	}
}
