"""Which of how many processes this one is, whoever started it: torchrun, srun, mpirun, or a cluster's own variables.

PyTorch, the loader and the cache read torchrun's names; what another launcher says is put under them.
"""

import os
import re
import zlib

# Each with the names of the rank, of the number of processes, and of both within the machine.
TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
OPEN_MPI = tuple(f"OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"))
MPICH = ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")  # and Intel MPI
# Not SLURM_NTASKS, which a batch script has as well, and that is a single process: the step's number is srun's.
SRUN = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE")
# srun last: torchrun and mpirun may themselves be started by it.
LAUNCHERS = (TORCHRUN, OPEN_MPI, MPICH, SRUN)


def processes() -> int:
    """The number of processes of this launch, 1 without one; of several, RANK, MASTER_ADDR and the like are set.

    Raises SystemExit that says what to export where the launcher does not tell enough.
    """
    known = os.environ
    if "RANK" in known and "WORLD_SIZE" not in known:
        raise SystemExit("RANK is set and WORLD_SIZE is not: export the number of processes as WORLD_SIZE.")
    launcher = next((names for names in LAUNCHERS if names[0] in known and names[1] in known), None)
    if launcher is None:
        return 1
    rank, world_size, _, local_size = (known.get(name, "") for name in launcher)
    if not (rank.isdecimal() and world_size.isdecimal() and int(rank) < int(world_size)):
        raise SystemExit(
            f"{launcher[0]} is {rank!r} and {launcher[1]} {world_size!r}: ranks are numbers from 0 to below the size."
        )
    if int(world_size) == 1:
        return 1
    found = {"RANK": rank, "WORLD_SIZE": world_size}
    # Who exports RANK by hand may leave the place within the machine to srun or mpirun.
    if place := next((known[local] for _, _, local, _ in LAUNCHERS if local in known), None):
        found["LOCAL_RANK"] = place
    # srun writes "4(x2),3" for machines of 4, 4 and 3. The first stands for all: it only shares out cores and memory.
    if number := re.match(r"\d+", local_size):
        found["LOCAL_WORLD_SIZE"] = number[0]
    found |= meeting_point(world_size, alone=found.get("LOCAL_WORLD_SIZE") == world_size)
    for name, value in found.items():
        known.setdefault(name, value)
    if missing := [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in known]:
        raise SystemExit(
            f"This is one of {world_size} processes, and nothing says where they meet (no {' and no '.join(missing)}): "
            "export the name of rank 0's machine as MASTER_ADDR and a free port of it as MASTER_PORT."
        )
    return int(world_size)


def meeting_point(world_size: str, alone: bool) -> dict[str, str]:
    """What the launcher lets one derive of MASTER_ADDR and MASTER_PORT; `alone`: on a single machine."""
    known, found = os.environ, {}
    by_srun = known.get("SLURM_STEP_NUM_TASKS") == world_size
    if alone:
        found["MASTER_ADDR"] = "127.0.0.1"
    elif by_srun and "SLURM_STEP_NODELIST" in known:
        # "rack[1-2]n[03,07-09]-ib,login": the first of each bracket, up to the first comma that is left then.
        found["MASTER_ADDR"] = re.sub(r"\[(\w+)[^\]]*\]", r"\1", known["SLURM_STEP_NODELIST"]).partition(",")[0]
    job = known.get("PMIX_NAMESPACE")  # Open MPI's name of the launch
    if job is None and by_srun:
        job = f"{known.get('SLURM_JOB_ID')}.{known.get('SLURM_STEP_ID')}"
    if job is not None:
        # From 10000 to below 30000, where no system takes the ports that it gives away by itself.
        found["MASTER_PORT"] = str(10_000 + zlib.crc32(job.encode()) % 20_000)
    return found
