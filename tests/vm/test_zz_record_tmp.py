import pathlib
from hardware import PLAIN, NEIGHBOUR
def test_record(guest):
    out = pathlib.Path("/tmp/qemu-rec"); out.mkdir(exist_ok=True)
    d = guest.device(PLAIN)
    for name, cmd in {"smart": f"nvme smart-log {d} --output-format=json", "ctrl": f"nvme id-ctrl {d} --output-format=json", "smartctl": f"smartctl --json=c -a -l devstat -l scttempsts {d}",
        "pci": "for d in /sys/bus/pci/devices/*; do echo $d $(cat $d/class) $(cat $d/current_link_speed $d/current_link_width $d/max_link_speed $d/max_link_width 2>&1 | tr '\\n' ' ') $(ls $d | grep aer | tr '\\n' ' '); done",
        "time": f"nproc; time (for i in 1 2 3 4 5; do nvme smart-log {d} -o json >/dev/null; done); lsmod | head -50; nvme version",
        "loops": "python3 -V; systemd-detect-virt; ls -la /sys/block/nvme0n1"}.items():
        r = guest.run(cmd, check=False)
        (out / name).write_text(r.stdout + r.stderr)
