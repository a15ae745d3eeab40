// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Containerd-shim-runc-v2 is containerd's shim for runc, which has a container's block devices mounted where they
// cannot be made.
//
// In a user namespace nobody makes device files, and runc mounts there what the machine has at the path that a device
// is to have in the container (libcontainer/rootfs_linux.go, bindMountDeviceNode). For a raw block volume that is a
// path that the pod's author chose, and the machine has nothing there. This shim is upstream's but for one thing:
// before runc creates a container with such a device, it says in the container's specification where on the machine the
// kubelet has it.
package main

import (
	"context"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/manager"
	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/task"
	"github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/containerd/v2/pkg/shutdown"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/plugin"
	"github.com/containerd/plugin/registry"
	"github.com/containerd/ttrpc"
)

func main() {
	// As upstream's package task/plugin does.
	registry.Register(&plugin.Registration{
		Type:     plugins.TTRPCPlugin,
		ID:       "task",
		Requires: []plugin.Type{plugins.EventPlugin, plugins.InternalPlugin},
		InitFn:   newTasks,
	})
	shim.RunShim(context.Background(), manager.NewShimManager("io.containerd.runc.v2"))
}

func newTasks(ic *plugin.InitContext) (any, error) {
	publisher, err := ic.GetByID(plugins.EventPlugin, "publisher")
	if err != nil {
		return nil, err
	}
	stop, err := ic.GetByID(plugins.InternalPlugin, "shutdown")
	if err != nil {
		return nil, err
	}
	upstream, err := task.NewTaskService(ic.Context, publisher.(shim.Publisher), stop.(shutdown.Service)) //nolint:forcetypeassert // as upstream
	if err != nil {
		return nil, err
	}
	return tasks{upstream}, nil
}

// tasks are upstream's tasks.
type tasks struct{ taskapi.TTRPCTaskService }

// Create mounts what cannot be made before upstream creates the container.
func (t tasks) Create(ctx context.Context, r *taskapi.CreateTaskRequest) (*taskapi.CreateTaskResponse, error) {
	if err := mountDevices(r.GetBundle(), machine); err != nil {
		return nil, err
	}
	return t.TTRPCTaskService.Create(ctx, r)
}

// RegisterTTRPC registers the service in place of upstream's.
func (t tasks) RegisterTTRPC(server *ttrpc.Server) error {
	taskapi.RegisterTTRPCTaskService(server, t)
	return nil
}
