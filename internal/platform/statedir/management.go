// SPDX-License-Identifier: Apache-2.0

package statedir

// Management is the directory of the account, for what is the management plane's alone.
type Management Dir

// PlaneRecord is what the management plane is made of now, while it changes. It has secrets.
func (m Management) PlaneRecord() string { return Dir(m).join("management-plane.json") }

// FrontSocket is where the front of the management plane's API servers tells how it is.
func (m Management) FrontSocket() string { return Dir(m).join("run", "front.sock") }
