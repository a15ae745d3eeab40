// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"path/filepath"
	"strings"

	"muster.dev/muster/internal/platform/systemd"
)

// watchUnit is the service that notices what a kubelet alone does not (muster node watch).
const watchUnit = "muster-node-watch.service"

// watchService is it. It may write where it puts things right, and nowhere else: links of certificates, authorities,
// the kubelet's arguments, the ledger, notices and locks. As root without capabilities it may restart the kubelet
// still, which systemd grants by the user. Its own directory in /run, with the notices, goes with it.
const watchService = `[Unit]
Description=Muster's watch over this node's certificates and address
Documentation=https://kubernetes.io/docs/reference/access-authn-authz/kubelet-tls-bootstrapping/
Wants=network-online.target
After=network-online.target kubelet.service
ConditionPathExists=` + LedgerPath + `
StartLimitIntervalSec=0

[Service]
ExecStart=BINDIR/muster node watch
Restart=always
RestartSec=5
RuntimeDirectory=muster
UMask=0077
CapabilityBoundingSet=
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=-/var/lib/kubelet -/etc/kubernetes -/etc/eks/kubelet -` + dataDir + ` /run
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service

[Install]
WantedBy=multi-user.target
`

// watchArtifact is the unit as it is placed.
func (h *Host) watchArtifact() artifact {
	return artifact{path: unitDir + "/" + watchUnit, mode: 0o644, content: []byte(strings.ReplaceAll(watchService, "BINDIR", h.BinDir))}
}

// watch starts it, once there is something to be watched over.
func (j *joining) watch(ctx context.Context) error {
	changed := j.changes(unitDir+"/"+watchUnit, filepath.Join(j.BinDir, "muster"))
	if err := j.do(ctx, startOrRestart(changed), watchUnit); err != nil {
		return err
	}
	j.done("watch", "started: certificates and address are looked after")
	return nil
}

func startOrRestart(changed bool) systemd.Verb {
	if changed {
		return systemd.Restart
	}
	return systemd.Start
}
