// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"muster.dev/muster/internal/platform/version"
	"muster.dev/muster/internal/storage/efs"
)

// The sockets on a machine, where kubelets look for them.
const (
	driverSocket   = "/var/lib/kubelet/plugins/" + efs.Driver + "/csi.sock"
	registerSocket = "/var/lib/kubelet/plugins_registry/" + efs.Driver + "-reg.sock"
)

// identity says which driver it is.
type identity struct {
	csi.UnimplementedIdentityServer
}

// GetPluginInfo implements [csi.IdentityServer].
func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: efs.Driver, VendorVersion: version.Version}, nil
}

// GetPluginCapabilities implements [csi.IdentityServer].
func (identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{
		Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}},
	}, {
		Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE}},
	}}}, nil
}

// Probe implements [csi.IdentityServer].
func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// maxReason is how much a kubelet may say in the log at a time, in characters.
const maxReason = 1000

// registrar tells a kubelet where the driver answers, as node-driver-registrar does.
type registrar struct {
	registration.UnimplementedRegistrationServer
	machine string
	log     *slog.Logger
}

// GetInfo implements [registration.RegistrationServer].
func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: efs.Driver, Endpoint: driverSocket, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus implements [registration.RegistrationServer].
func (r registrar) NotifyRegistrationStatus(ctx context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if s.GetPluginRegistered() {
		r.log.DebugContext(ctx, "a kubelet has registered the volume driver", "machine", r.machine)
	} else {
		r.log.WarnContext(ctx, "a kubelet refuses the volume driver; it asks again", "machine", r.machine, "error", fmt.Sprintf("%.*s", maxReason, s.GetError()))
	}
	return &registration.RegistrationStatusResponse{}, nil
}
