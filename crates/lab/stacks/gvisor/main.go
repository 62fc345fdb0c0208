// A host made of gVisor's netstack behind a pipe: frames in, frames out, and what the application read. The records are those of
// ../../src/stacks/receiving/program.rs. Its clock stands still within a case, so nothing is sent again and nothing times out.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/link/ethernet"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	port  = 7777
	card  = 1
	queue = 4096
	// With one thread a goroutine that yields comes back when all others have had their turn. TCP hands a segment on a few times.
	turns = 12
	// Longer than anything of one case is remembered.
	between = 2 * time.Minute
)

var mac = tcpip.LinkAddress("\x02\x00\x00\x00\x00\x10")

type host struct {
	clock     *faketime.ManualClock
	wire      *channel.Endpoint
	stack     *stack.Stack
	datagrams tcpip.Endpoint
	listener  tcpip.Endpoint
	accepted  []tcpip.Endpoint
	stream    bytes.Buffer
	out       *bufio.Writer
}

func must(what string, err tcpip.Error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", what, err)
		os.Exit(1)
	}
}

func (h *host) endpoint(protocol tcpip.TransportProtocolNumber) tcpip.Endpoint {
	endpoint, err := h.stack.NewEndpoint(protocol, ipv6.ProtocolNumber, &waiter.Queue{})
	must("endpoint", err)
	endpoint.SocketOptions().SetV6Only(false)
	must("bind", endpoint.Bind(tcpip.FullAddress{Port: port}))
	return endpoint
}

func newHost(out *bufio.Writer) *host {
	h := &host{clock: faketime.NewManualClock(), wire: channel.New(queue, 1500, mac), out: out}
	h.stack = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{arp.NewProtocol, ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
		Clock:              h.clock,
	})
	must("card", h.stack.CreateNIC(card, ethernet.New(h.wire)))
	for protocol, address := range map[tcpip.NetworkProtocolNumber]tcpip.AddressWithPrefix{
		ipv4.ProtocolNumber: {Address: tcpip.AddrFrom4([4]byte{192, 0, 2, 16}), PrefixLen: 24},
		ipv6.ProtocolNumber: {Address: tcpip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: 0x10}), PrefixLen: 64},
	} {
		protocolAddress := tcpip.ProtocolAddress{Protocol: protocol, AddressWithPrefix: address}
		must("address", h.stack.AddProtocolAddress(card, protocolAddress, stack.AddressProperties{}))
	}
	h.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: card}, {Destination: header.IPv6EmptySubnet, NIC: card}})
	h.datagrams = h.endpoint(udp.ProtocolNumber)
	h.listener = h.endpoint(tcp.ProtocolNumber)
	must("listen", h.listener.Listen(16))
	return h
}

func (h *host) put(kind byte, payload []byte) {
	h.out.WriteByte(kind)
	binary.Write(h.out, binary.BigEndian, uint16(len(payload)))
	h.out.Write(payload)
}

// Lets every goroutine of the stack run until it waits, and sends out what it sent.
func (h *host) settle() {
	for turn := 0; turn < turns; turn++ {
		runtime.Gosched()
	}
	for packet := h.wire.Read(); packet != nil; packet = h.wire.Read() {
		view := packet.ToView()
		h.put('F', view.AsSlice())
		packet.DecRef()
	}
}

func (h *host) take(frame []byte) {
	packet := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(bytes.Clone(frame))})
	h.wire.InjectInbound(0, packet)
	packet.DecRef()
	h.settle()
	for {
		endpoint, _, err := h.listener.Accept(nil)
		if err != nil {
			break
		}
		h.accepted = append(h.accepted, endpoint)
	}
	h.hear()
}

// The application reads at once, as one that waits for data does.
func (h *host) hear() {
	for {
		var datagram bytes.Buffer
		if _, err := h.datagrams.Read(&datagram, tcpip.ReadOptions{}); err != nil {
			break
		}
		h.put('U', datagram.Bytes())
	}
	for _, endpoint := range h.accepted {
		for {
			if _, err := endpoint.Read(&h.stream, tcpip.ReadOptions{}); err != nil {
				break
			}
		}
	}
	h.settle()
}

func (h *host) beginAnew() {
	for _, endpoint := range h.accepted {
		endpoint.Abort()
	}
	h.accepted = nil
	h.settle()
	h.clock.Advance(between)
	h.settle()
	h.stream.Reset()
}

func (h *host) serve(in io.Reader) bool {
	var head [3]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return false
	}
	payload := make([]byte, binary.BigEndian.Uint16(head[1:]))
	if _, err := io.ReadFull(in, payload); err != nil {
		return false
	}
	switch head[0] {
	case 'F':
		h.take(payload)
	case 'R':
		h.put('S', h.stream.Bytes())
	case 'N':
		h.beginAnew()
	}
	h.put('D', nil)
	return h.out.Flush() == nil
}

func main() {
	runtime.GOMAXPROCS(1)
	in := bufio.NewReader(os.Stdin)
	host := newHost(bufio.NewWriter(os.Stdout))
	for host.serve(in) {
	}
}
