// SPDX-License-Identifier: Apache-2.0

package bootstraptoken

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/policyconfig"
)

// listKey is the key of the list in the ConfigMap of hosts, see facts.StaticConfigMap.
const listKey = "machines.yaml"

// Register makes a host known to the certificate controller of the cluster: its name, and the addresses that its
// certificates may have. It returns the machine that the host was registered as before, or nil if it was not
// registered.
func Register(ctx context.Context, c client.Client, m policy.Machine) (before *policy.Machine, err error) {
	_, err = edit(ctx, c, true, func(list []byte) ([]byte, bool, error) {
		before = find(list, m.ID)
		return facts.AddMachine(list, m)
	})
	return before, err
}

// find finds a machine in a list. Problems of a list that cannot be read are reported when it is written.
func find(list []byte, id string) *policy.Machine {
	known, err := facts.ReadList(list)
	if err != nil {
		return nil
	}
	for i := range known {
		if known[i].ID == id {
			return &known[i]
		}
	}
	return nil
}

// Differences says in which ways a host is registered otherwise than before.
func Differences(before, now policy.Machine) []string {
	var all []string
	note := func(what, was, is string) {
		if was != is {
			all = append(all, fmt.Sprintf("%s %s instead of %s", what, cmp.Or(is, "none"), cmp.Or(was, "none")))
		}
	}
	note("address", joined(before.Addresses), joined(now.Addresses))
	note("name", strings.Join(before.Names, ","), strings.Join(now.Names, ","))
	note("node name", before.NodeName, now.NodeName)
	note("group", before.Group, now.Group)
	return all
}

func joined(addresses []netip.Addr) string {
	texts := make([]string, len(addresses))
	for i, address := range addresses {
		texts[i] = address.String()
	}
	return strings.Join(texts, ",")
}

// Forget takes a host that was registered out again, and reports whether it was there.
func Forget(ctx context.Context, c client.Client, node string) (bool, error) {
	return edit(ctx, c, false, func(list []byte) ([]byte, bool, error) { return facts.RemoveMachine(list, facts.HostID(node)) })
}

// edit changes the list of hosts, again if somebody else changed it in between.
func edit(ctx context.Context, c client.Client, create bool, change func([]byte) ([]byte, bool, error)) (changed bool, err error) {
	key := client.ObjectKey{Namespace: policyconfig.HostsNamespace, Name: policyconfig.HostsConfigMap}
	again := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	err = retry.OnError(retry.DefaultBackoff, again, func() error {
		changed = false
		var hosts corev1.ConfigMap
		err := c.Get(ctx, key, &hosts)
		missing := apierrors.IsNotFound(err)
		switch {
		case missing && !create:
			return nil
		case missing:
			hosts = corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		case err != nil:
			return err
		}
		text, ok := hosts.Data[listKey]
		if !ok {
			text = "machines: []\n"
		}
		out, differs, err := change([]byte(text))
		if err != nil {
			return fmt.Errorf("the list of hosts (ConfigMap %s, key %s): %w", key, listKey, err)
		}
		if !differs && ok {
			return nil
		}
		if hosts.Data == nil {
			hosts.Data = map[string]string{}
		}
		hosts.Data[listKey] = string(out)
		if missing {
			err = c.Create(ctx, &hosts)
		} else {
			err = c.Update(ctx, &hosts)
		}
		if missing && apierrors.IsNotFound(err) {
			return fmt.Errorf("the cluster has no namespace %s, so its certificate controller knows no registered hosts: register the host in the inventory that its policy file names", key.Namespace)
		}
		changed = differs
		return err
	})
	return changed, err
}
